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

{{/* Cluster roles with rights on Secrets, and their bindings in single namespaces. Parameters: root, rules. */}}
{{- define "lockstep.secretRoles" -}}
{{- $values := .root.Values.rbac }}
{{- with .rules.secretViewer }}
{{ include "lockstep.secretRole" (dict "root" $.root "suffix" "secret-viewer" "rules" . "namespaces" $values.secretViewerNamespaces "description" "Lets the controller read the Secrets of a namespace, if a RoleBinding binds it there.") }}
{{- end }}
{{- with .rules.secretEditor }}
{{ include "lockstep.secretRole" (dict "root" $.root "suffix" "secret-editor" "rules" . "namespaces" $values.secretNamespaces "description" "Lets the controller read, create, change and delete the Secrets of a namespace, if a RoleBinding binds it there.") }}
{{ include "lockstep.secretRole" (dict "root" $.root "suffix" "secret-reader" "rules" . "namespaces" list "description" "Deprecated: it reads, creates, changes and deletes Secrets, which its name does not say. Bind the ClusterRole with the suffix secret-viewer or secret-editor instead.") }}
{{- end }}
{{- end }}

{{/* Cluster role, and its bindings to the controller in single namespaces. Parameters: root, suffix (of the name), rules,
namespaces, description. */}}
{{- define "lockstep.secretRole" -}}
{{- $root := .root }}
{{- $name := printf "%s-%s" (include "lockstep.fullname" .root) .suffix }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  {{- include "lockstep.metadata" (dict "root" $root "name" $name "annotations" (dict "kubernetes.io/description" .description)) | nindent 2 }}
rules:
  {{- toYaml .rules | nindent 2 }}
{{- range .namespaces }}
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
