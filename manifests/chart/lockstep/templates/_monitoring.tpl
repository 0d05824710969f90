{{/* Endpoints to scrape. The job is the same for every release, because alerts and dashboards select by it. Parameters:
root, monitor (values), jobs (a list of webhook and controller, as far as the Pods have them). */}}
{{- define "lockstep.endpoints" -}}
{{- $ports := dict "webhook" "health" "controller" "metrics" }}
{{- $monitor := .monitor }}
{{- $root := .root }}
{{- $secure := $root.Values.metrics.secure.enabled }}
{{- range .jobs }}
{{- if $secure }}
- port: https-metrics
  scheme: https
  path: /metrics{{ if eq . "webhook" }}/webhook{{ end }}
  authorization:
    credentials:
      name: {{ include "lockstep.metricsReader" $root }}
      key: token
  # The serving certificate is that of the webhook.
  tlsConfig:
    serverName: {{ include "lockstep.serviceName" $root }}.{{ $root.Release.Namespace }}.svc
    ca:
      secret:
        name: {{ include "lockstep.tlsSecretName" $root }}
        key: ca.crt
{{- else }}
- port: {{ get $ports . }}
  path: /metrics
{{- end }}
  interval: {{ $monitor.interval }}
  scrapeTimeout: {{ $monitor.scrapeTimeout }}
  relabelings:
    - targetLabel: job
      replacement: lockstep-{{ . }}
    {{- if and $secure (eq . "webhook") }}
    # The controller forwards these metrics.
    - targetLabel: container
      replacement: webhook
    {{- end }}
{{- end }}
{{- end }}

{{/* Service account with only the right to read the metrics, and the Secret with its token. */}}
{{- define "lockstep.metricsReader" -}}
{{ include "lockstep.fullname" . }}-metrics-reader
{{- end }}

{{/* Containers of the Pods, as jobs. */}}
{{- define "lockstep.jobs" -}}
{{- if eq .Values.webhook.mode "off" }}[controller]{{ else }}[webhook, controller]{{ end }}
{{- end }}

{{/* Selector of the Pods of both Deployments. */}}
{{- define "lockstep.allPods" -}}
matchLabels:
  app.kubernetes.io/instance: {{ .Release.Name }}
matchExpressions:
  - key: app.kubernetes.io/name
    operator: In
    values:
      - {{ include "lockstep.name" . }}
      - {{ include "lockstep.name" . }}-controller
{{- end }}
