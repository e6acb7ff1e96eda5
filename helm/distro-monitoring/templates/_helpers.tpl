{{- define "distro-monitoring.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "distro-monitoring.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* What comes before the alert's name in the link to its runbook. */}}
{{- define "distro-monitoring.runbookBaseUrl" -}}
{{- default "{{ $externalURL }}/consoles/distro-runbooks.html#" .Values.runbookBaseUrl }}
{{- end }}
