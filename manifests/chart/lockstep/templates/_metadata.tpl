{{/* Labels by which Services and Deployments find the Pods. They never change, because selectors are immutable. */}}
{{- define "lockstep.selectorLabels" -}}
app.kubernetes.io/name: {{ include "lockstep.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The same for the controller's own Pods, which the webhook's Service must not find. */}}
{{- define "lockstep.controllerSelectorLabels" -}}
app.kubernetes.io/name: {{ include "lockstep.name" . }}-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of an object. Parameters: root, selector (a template), extra (labels). */}}
{{- define "lockstep.labels" -}}
{{- $common := dict
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_")
}}
{{- $selector := include (default "lockstep.selectorLabels" .selector) .root | fromYaml }}
{{- merge (dict) $selector (default (dict) .extra) $common .root.Values.commonLabels | toYaml }}
{{- end }}

{{/* Metadata of an object. Parameters: root, name, namespace, selector, labels, annotations. */}}
{{- define "lockstep.metadata" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "lockstep.labels" (dict "root" .root "selector" .selector "extra" .labels) | nindent 2 }}
{{- with merge (dict) (default (dict) .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
