{{/*
Names of the objects. With a release named `lockstep`, they are those of the kustomize base.
*/}}

{{- define "lockstep.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* At most 50 characters, so that a name with the longest suffix is still a valid one of a Service. */}}
{{- define "lockstep.fullname" -}}
{{- $name := include "lockstep.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "lockstep.serviceName" -}}
{{ include "lockstep.fullname" . }}-webhook
{{- end }}

{{- define "lockstep.tlsSecretName" -}}
{{- default (printf "%s-webhook-tls" (include "lockstep.fullname" .)) .Values.certificates.secretName }}
{{- end }}

{{/* Name of the Lease, and of the controller's own Deployment. */}}
{{- define "lockstep.leaseName" -}}
{{ include "lockstep.fullname" . }}-controller
{{- end }}

{{- define "lockstep.policyName" -}}
{{- default (printf "%s-policy" (include "lockstep.fullname" .)) .Values.policyConfigMap }}
{{- end }}

{{- define "lockstep.awsName" -}}
{{ include "lockstep.fullname" . }}-aws
{{- end }}

{{- define "lockstep.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "lockstep.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "lockstep.image" -}}
{{- $image := .Values.image }}
{{- with $image.registry }}{{ . }}/{{ end }}
{{- $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}
