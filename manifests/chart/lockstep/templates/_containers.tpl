{{/* Container of the webhook. It has no cluster credentials. */}}
{{- define "lockstep.webhookContainer" -}}
{{- $values := .Values }}
- name: webhook
  image: {{ include "lockstep.image" . }}
  {{- with $values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args:
    - webhook
    - --webhook-bind-address=0.0.0.0:{{ $values.webhook.port }}
    - --health-probe-bind-address=0.0.0.0:{{ $values.webhook.healthPort }}
    - --cert-dir=/run/lockstep/tls
    - --crd-status-file=/run/lockstep/tls/crds.json
    - --policy=/etc/lockstep/policy/policy.yaml
    - --shutdown-delay=10s
    {{- range (.Files.Get "files/arguments.yaml" | fromYaml).both }}
    - {{ . | quote }}
    {{- end }}
    {{- range (.Files.Get "files/arguments.yaml" | fromYaml).webhook }}
    - {{ . | quote }}
    {{- end }}
    {{- if $values.metrics.secure.enabled }}
    - --metrics-bind-address=127.0.0.1:{{ $values.metrics.secure.webhookPort }}
    {{- end }}
    {{- range $values.webhook.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- with concat (include "lockstep.logEnv" . | fromYamlArray) $values.webhook.extraEnv }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.webhook.extraEnvFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - name: webhook
      containerPort: {{ $values.webhook.port }}
    - name: health
      containerPort: {{ $values.webhook.healthPort }}
  readinessProbe:
    {{- include "lockstep.replaced" (dict "fields" (dict "httpGet" (dict "path" "/readyz" "port" "health") "periodSeconds" 5) "by" $values.webhook.readinessProbe) | nindent 4 }}
  livenessProbe:
    {{- include "lockstep.replaced" (dict "fields" (dict "httpGet" (dict "path" "/healthz" "port" "health") "periodSeconds" 10) "by" $values.webhook.livenessProbe) | nindent 4 }}
  resources:
    {{- toYaml $values.webhook.resources | nindent 4 }}
  securityContext:
    {{- include "lockstep.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - name: tls
      mountPath: /run/lockstep/tls
      readOnly: true
    - name: policy
      mountPath: /etc/lockstep/policy
      readOnly: true
    {{- with (.Files.Get "files/arguments.yaml" | fromYaml).volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $values.webhook.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Container of the controller, the only one with cluster credentials. As a sidecar it has no readiness probe,
because it must not make the webhook's Pod unready. */}}
{{- define "lockstep.controllerContainer" -}}
{{- $values := .Values }}
{{- $hasWebhook := ne $values.webhook.mode "off" }}
- name: controller
  image: {{ include "lockstep.image" . }}
  {{- with $values.image.pullPolicy }}
  imagePullPolicy: {{ . }}
  {{- end }}
  args:
    - controller
    - --health-probe-bind-address=0.0.0.0:{{ $values.controller.healthPort }}
    - --policy=/etc/lockstep/policy/policy.yaml
    - --leader-election-id={{ include "lockstep.leaseName" . }}
    {{- if $hasWebhook }}
    - --cert-dir=/run/lockstep/tls
    - --crd-status-file=/run/lockstep/tls/crds.json
    - --tls-secret={{ include "lockstep.tlsSecretName" . }}
    - --webhook-service={{ include "lockstep.serviceName" . }}
    - --webhook-configuration={{ include "lockstep.fullname" . }}
    - --webhook-deployment={{ include "lockstep.fullname" . }}
    {{- range (.Files.Get "files/arguments.yaml" | fromYaml).both }}
    - {{ . | quote }}
    {{- end }}
    {{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
    {{- $crd := $.Files.Get $path | fromYaml }}
    {{- if gt (len $crd.spec.versions) 1 }}
    - --inject-conversion-crd={{ $crd.metadata.name }}
    {{- end }}
    {{- end }}
    {{- if ne $values.certificates.source "selfSigned" }}
    - --cert-source=secret
    {{- end }}
    {{- range $values.certificates.extraDnsNames }}
    - --cert-extra-dns-name={{ . }}
    {{- end }}
    {{- else if $values.namespaces }}
    - --watch-namespaces={{ join "," $values.namespaces }}
    {{- end }}
    {{- range (.Files.Get "files/arguments.yaml" | fromYaml).controller }}
    - {{ . | quote }}
    {{- end }}
    {{- if eq $values.webhook.mode "only" }}
    - --webhook-only
    {{- else if and (not $hasWebhook) (not $values.namespaces) }}
    - --no-webhook
    {{- end }}
    {{- with $values.metrics.secure }}
    {{- if .enabled }}
    - --metrics-secure
    - --metrics-bind-address=0.0.0.0:{{ .port }}
    - --webhook-metrics-url=http://127.0.0.1:{{ .webhookPort }}
    {{- end }}
    {{- end }}
    {{- with $values.controller.shards }}
    - --shards={{ . }}
    {{- end }}
    {{- range $values.controller.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  env:
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    - name: POD_SERVICE_ACCOUNT
      valueFrom:
        fieldRef:
          fieldPath: spec.serviceAccountName
    {{- with concat (include "lockstep.logEnv" . | fromYamlArray) $values.controller.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  # AWS region, role or endpoint, in the environment variables of the AWS tools.
  envFrom:
    - configMapRef:
        name: {{ include "lockstep.awsName" . }}
        optional: true
    {{- if eq $values.aws.credentials.source "secret" }}
    - secretRef:
        name: {{ $values.aws.credentials.secretName }}
    {{- end }}
    {{- with $values.controller.extraEnvFrom }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: metrics
      containerPort: {{ $values.controller.healthPort }}
    {{- with $values.metrics.secure }}
    {{- if .enabled }}
    - name: https-metrics
      containerPort: {{ .port }}
    {{- end }}
    {{- end }}
  {{- if not $hasWebhook }}
  readinessProbe:
    httpGet:
      path: /readyz
      port: metrics
    periodSeconds: 10
  {{- end }}
  livenessProbe:
    {{- include "lockstep.replaced" (dict "fields" (dict "httpGet" (dict "path" "/healthz" "port" "metrics") "periodSeconds" 10) "by" $values.controller.livenessProbe) | nindent 4 }}
  resources:
    {{- toYaml $values.controller.resources | nindent 4 }}
  securityContext:
    {{- include "lockstep.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - name: tls
      mountPath: /run/lockstep/tls
    - name: policy
      mountPath: /etc/lockstep/policy
      readOnly: true
    - name: cluster-credentials
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
    {{- with (.Files.Get "files/arguments.yaml" | fromYaml).volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $values.controller.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "lockstep.logEnv" -}}
{{- if .Values.logLevel -}}
- name: RUST_LOG
  value: {{ .Values.logLevel | quote }}
{{- else -}}
[]
{{- end }}
{{- end }}
