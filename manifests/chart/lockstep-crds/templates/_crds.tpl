{{/* Written by `lockstep manifests`, from the chart lockstep; do not edit. */}}
{{/* CRDs of the files, and the policy that denies their deletion. Parameters: root, name (of the policy), keep,
annotations, service (name, namespace; nil without conversion). */}}
{{- define "lockstep.crds" -}}
{{- $root := .root }}
{{- $annotations := deepCopy .annotations }}
{{- if .keep }}
{{- $_ := set $annotations "helm.sh/resource-policy" "keep" }}
{{- else }}
{{- /* The policy of an earlier revision, which kept the CRDs, may still exist. */}}
{{- $_ := set $annotations "lockstep.dev/allow-deletion" "true" }}
{{- end }}
{{- $service := .service }}
{{- range $path, $_ := $root.Files.Glob "files/crds/*.yaml" }}
{{- $crd := $root.Files.Get $path | fromYaml }}
{{- $spec := $crd.spec }}
{{- if not $service }}
{{- $stored := list }}
{{- range $spec.versions }}
{{- if .storage }}
{{- $stored = append $stored . }}
{{- end }}
{{- end }}
{{- $_ := set $spec "versions" $stored }}
{{- else if gt (len $spec.versions) 1 }}
{{- $reference := dict "name" $service.name "namespace" $service.namespace "path" "/convert" "port" 443 }}
{{- $webhook := dict "conversionReviewVersions" (list "v1") "clientConfig" (dict "service" $reference) }}
{{- $_ := set $spec "conversion" (dict "strategy" "Webhook" "webhook" $webhook) }}
{{- end }}
---
apiVersion: {{ $crd.apiVersion }}
kind: {{ $crd.kind }}
metadata:
  name: {{ $crd.metadata.name }}
  labels:
    {{- include "lockstep.labels" (dict "root" $root) | nindent 4 }}
  annotations:
    {{- toYaml $annotations | nindent 4 }}
spec:
  {{- toYaml $spec | nindent 2 }}
{{- end }}
{{- if .keep }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  {{- include "lockstep.metadata" (dict "root" $root "name" .name "annotations" (dict "helm.sh/resource-policy" "keep")) | nindent 2 }}
{{ $root.Files.Get "files/crd-deletion-policy.yaml" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "lockstep.metadata" (dict "root" $root "name" .name "annotations" (dict "helm.sh/resource-policy" "keep")) | nindent 2 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end }}
{{- end }}
