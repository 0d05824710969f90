{{/* Objects of the hook that runs before the release is uninstalled. */}}

{{- define "lockstep.uninstallName" -}}
{{ include "lockstep.fullname" . }}-uninstall
{{- end }}

{{/* Neither a Service nor `lockstep status` finds the Pod of the Job. */}}
{{- define "lockstep.uninstallSelectorLabels" -}}
app.kubernetes.io/name: {{ include "lockstep.name" . }}-uninstall
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Metadata of an object of the hook. After a failure it stays, with its log. Parameters: root, namespace, weight. */}}
{{- define "lockstep.uninstallMetadata" -}}
{{- $hook := dict
  "helm.sh/hook" "pre-delete"
  "helm.sh/hook-weight" .weight
  "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded"
}}
{{- include "lockstep.metadata" (dict "root" .root "name" (include "lockstep.uninstallName" .root) "namespace" .namespace "selector" "lockstep.uninstallSelectorLabels" "annotations" $hook) }}
{{- end }}

{{/* Role of the hook and its binding. Parameters: root, kind, namespace, rules. */}}
{{- define "lockstep.uninstallRole" -}}
{{- $name := include "lockstep.uninstallName" .root }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  {{- include "lockstep.uninstallMetadata" (dict "root" .root "namespace" .namespace "weight" "-2") | nindent 2 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include "lockstep.uninstallMetadata" (dict "root" .root "namespace" .namespace "weight" "-1") | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- define "lockstep.uninstallContainer" -}}
- name: uninstall
  image: {{ include "lockstep.image" . }}
  {{- with .Values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args:
    - uninstall
    - --objects-only
    - --yes
    - --namespace={{ .Release.Namespace }}
    - --timeout={{ .Values.uninstall.timeout }}
  resources:
    {{- toYaml .Values.uninstall.resources | nindent 4 }}
  securityContext:
    {{- include "lockstep.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - name: cluster-credentials
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end }}
