{{/* Metadata of the Pods. Parameters: root, selector, annotations. */}}
{{- define "lockstep.podMetadata" -}}
{{- $values := .root.Values }}
{{- $annotations := merge (dict) $values.podAnnotations (default (dict) .annotations) $values.commonAnnotations }}
{{- $selector := include .selector .root | fromYaml }}
{{- $common := dict "app.kubernetes.io/part-of" "lockstep" }}
labels:
  {{- merge (dict) $selector $values.podLabels $common $values.commonLabels | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Annotations that restart the Pods, and keep AWS credentials out of the webhook's container. */}}
{{- define "lockstep.podAnnotations" -}}
{{- $annotations := dict }}
{{- with include "lockstep.awsData" . }}
{{- $_ := set $annotations "checksum/aws" (sha256sum .) }}
{{- end }}
{{- if and (has .Values.aws.credentials.source (list "irsa" "podIdentity")) (eq .Values.webhook.mode "sidecar") }}
{{- $_ := set $annotations "eks.amazonaws.com/skip-containers" "webhook" }}
{{- end }}
{{- toYaml $annotations }}
{{- end }}

{{/* Specification of Pods. Parameters: root, selector, containers (YAML), volumes (YAML), spread, grace, serviceAccount
(default: the controller's). */}}
{{- define "lockstep.podSpec" -}}
{{- $values := .root.Values }}
serviceAccountName: {{ default (include "lockstep.serviceAccountName" .root) .serviceAccount }}
automountServiceAccountToken: false
{{- with .grace }}
terminationGracePeriodSeconds: {{ . }}
{{- end }}
securityContext:
  {{- include "lockstep.replaced" (dict "fields" (include "lockstep.podSecurity" . | fromYaml) "by" $values.podSecurityContext) | nindent 2 }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $values.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- if $values.hostNetwork }}
hostNetwork: true
{{- end }}
{{- with $values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with $values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not (kindIs "invalid" $values.enableServiceLinks) }}
enableServiceLinks: {{ $values.enableServiceLinks }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not (kindIs "invalid" $values.topologySpreadConstraints) }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- else if .spread }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include .selector .root | nindent 8 }}
{{- end }}
containers:
  {{- .containers | trim | nindent 2 }}
volumes:
  {{- .volumes | trim | nindent 2 }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Fields of the chart, some of them replaced by values. The function `merge` would ignore `false` and 0. Parameters:
fields, by. */}}
{{- define "lockstep.replaced" -}}
{{- $fields := deepCopy .fields }}
{{- range $name, $value := .by }}
{{- $_ := set $fields $name $value }}
{{- end }}
{{- toYaml $fields }}
{{- end }}

{{- define "lockstep.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "lockstep.containerSecurity" -}}
{{- $own := dict
  "allowPrivilegeEscalation" false
  "capabilities" (dict "drop" (list "ALL"))
  "readOnlyRootFilesystem" true
}}
{{- include "lockstep.replaced" (dict "fields" $own "by" .Values.containerSecurityContext) }}
{{- end }}

{{/* Volume that webhook and controller share. */}}
{{- define "lockstep.sharedTlsVolume" -}}
- name: tls
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}

{{/* The TLS key pair without the CA's private key, for a webhook without controller container. */}}
{{- define "lockstep.secretTlsVolume" -}}
- name: tls
  secret:
    secretName: {{ include "lockstep.tlsSecretName" . }}
    optional: true
    # Octal 0440.
    defaultMode: 288
    items:
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
{{- end }}

{{/* Without a policy, every rule applies with its own severity. */}}
{{- define "lockstep.policyVolume" -}}
- name: policy
  configMap:
    name: {{ include "lockstep.policyName" . }}
    optional: true
{{- end }}

{{/* Volumes that depend on the installed kinds. */}}
{{- define "lockstep.kindVolumes" -}}
{{- with (.Files.Get "files/arguments.yaml" | fromYaml).volumes }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- define "lockstep.credentialsVolume" -}}
- name: cluster-credentials
  projected:
    # Octal 0440.
    defaultMode: 288
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}
