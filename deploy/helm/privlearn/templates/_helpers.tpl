{{- define "privlearn.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}-privlearn
{{- end }}

{{- define "privlearn.selector" -}}
app.kubernetes.io/name: privlearn
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "privlearn.labels" -}}
{{ include "privlearn.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "privlearn.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end -}}
{{- end }}
