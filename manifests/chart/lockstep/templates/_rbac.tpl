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

{{/* Cluster role with the rights on Secrets, and its bindings in single namespaces. Parameters: root, rules. */}}
{{- define "lockstep.secretReader" -}}
{{- $root := .root }}
{{- $name := printf "%s-secret-reader" (include "lockstep.fullname" .root) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  {{- include "lockstep.metadata" (dict "root" .root "name" $name) | nindent 2 }}
rules:
  {{- toYaml .rules | nindent 2 }}
{{- range .root.Values.rbac.secretNamespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "lockstep.metadata" (dict "root" $root "name" $name "namespace" .) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "lockstep.serviceAccountName" $root }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end }}
