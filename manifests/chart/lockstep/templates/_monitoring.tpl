{{/* Endpoints to scrape. The job is the same for every release, because alerts and dashboards select by it. Parameters:
root, monitor (values), jobs (a list of webhook and controller, as far as the Pods have them). */}}
{{- define "lockstep.endpoints" -}}
{{- $ports := dict "webhook" "health" "controller" "metrics" }}
{{- $monitor := .monitor }}
{{- range .jobs }}
- port: {{ get $ports . }}
  path: /metrics
  interval: {{ $monitor.interval }}
  scrapeTimeout: {{ $monitor.scrapeTimeout }}
  relabelings:
    - targetLabel: job
      replacement: lockstep-{{ . }}
{{- end }}
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
