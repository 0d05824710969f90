{{/* Content of a generated file, with the names of this release, as YAML. Parameters: root, file. */}}
{{- define "lockstep.generated" -}}
{{- tpl (.root.Files.Get (printf "files/%s" .file)) .root }}
{{- end }}

{{/* Mode of the roles in files/rbac.yaml. */}}
{{- define "lockstep.rbacMode" -}}
{{- get (dict "sidecar" "webhookAndController" "split" "webhookAndController" "only" "webhookOnly" "off" "controllerOnly") .Values.webhook.mode }}
{{- end }}
