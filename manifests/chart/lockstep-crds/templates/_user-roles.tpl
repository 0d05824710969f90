{{/* Written by `lockstep manifests`, from the chart lockstep; do not edit. */}}
{{/* Cluster roles of users: those that extend the built-in ones, and one with the rights on the kinds for administrators,
which extends none. Parameters: root, name, tenants (whether `admin` gets the rights that
a controller needs in a namespace, because RBAC lets users grant only rights that they have). */}}
{{- define "lockstep.userRoles" -}}
{{- $root := .root }}
{{- $name := .name }}
{{- $rules := $root.Files.Get "files/user-roles.yaml" | fromYaml }}
{{- $aggregate := "rbac.authorization.k8s.io/aggregate-to-" }}
{{- $roles := dict
  "edit" (dict "rules" $rules.edit "to" (list "admin" "edit"))
  "view" (dict "rules" $rules.view "to" (list "view"))
}}
{{- if .tenants }}
{{- $_ := set $roles "aggregate-to-admin" (dict "rules" $rules.tenantAdmin "to" (list "admin")) }}
{{- end }}
{{- with $rules.administrator }}
{{- $_ := set $roles "administrator" (dict "rules" . "to" list) }}
{{- end }}
{{- range $suffix, $role := $roles }}
{{- $labels := dict }}
{{- range $role.to }}
{{- $_ := set $labels (printf "%s%s" $aggregate .) "true" }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  {{- include "lockstep.metadata" (dict "root" $root "name" (printf "%s-%s" $name $suffix) "labels" $labels) | nindent 2 }}
rules:
  {{- toYaml $role.rules | nindent 2 }}
{{- end }}
{{- end }}
