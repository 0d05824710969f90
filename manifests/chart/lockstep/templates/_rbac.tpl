{{/* Role and its binding to the controller. Parameters: root, kind, namespace, rules. */}}
{{- define "lockstep.role" -}}
{{- $name := include "lockstep.fullname" .root }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  {{- include "lockstep.metadata" (dict "root" .root "name" $name "namespace" .namespace) | nindent 2 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include "lockstep.metadata" (dict "root" .root "name" $name "namespace" .namespace) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "lockstep.serviceAccountName" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
