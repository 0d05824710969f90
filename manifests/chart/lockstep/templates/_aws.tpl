{{/* Environment variables of the AWS tools, as the data of a ConfigMap; empty without any. */}}
{{- define "lockstep.awsData" -}}
{{- with .Values.aws.region }}
AWS_REGION: {{ . | quote }}
{{- end }}
{{- with .Values.aws.endpointUrl }}
AWS_ENDPOINT_URL: {{ . | quote }}
{{- end }}
{{- end }}
