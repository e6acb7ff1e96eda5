{{- define "distro.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* Short enough for every suffix of ours and a StatefulSet's own. */}}
{{- define "distro.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "distro.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "distro.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "distro.selectorLabels" -}}
app.kubernetes.io/name: {{ include "distro.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "distro.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "distro.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "distro.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "distro.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* "registry/repository:tag", or "@digest" where there is one. Arguments: root, image. */}}
{{- define "distro.image" -}}
{{- $name := printf "%s/%s" .root.Values.image.registry .image.repository }}
{{- if .image.digest }}
{{- printf "%s@%s" $name .image.digest | quote }}
{{- else }}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) | quote }}
{{- end }}
{{- end }}

{{- define "distro.tlsSecret" -}}
{{- if .Values.tls.certManager.enabled }}{{ include "distro.fullname" . }}-tls{{ else }}{{ .Values.tls.existingSecret }}{{ end }}
{{- end }}

{{/* Where pods of the cluster find the aggregator. */}}
{{- define "distro.serviceHost" -}}
{{ include "distro.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Names for which the certificate of cert-manager is issued, as a list. A public issuer refuses names of the cluster. */}}
{{- define "distro.dnsNames" -}}
{{- $names := list }}
{{- if .Values.tls.certManager.includeInternalNames }}
{{- $names = list (include "distro.serviceHost" .) (printf "%s-headless.%s.svc" (include "distro.fullname" .) .Release.Namespace) }}
{{- end }}
{{- with .Values.gateway.hostname }}{{ $names = append $names . }}{{ end }}
{{- toJson (concat $names .Values.tls.certManager.dnsNames | uniq) }}
{{- end }}

{{/* The name in the certificate that pods of the cluster ask for; empty: that of the service, under which they connect. */}}
{{- define "distro.serverName" -}}
{{- if .Values.tls.serverName }}{{ .Values.tls.serverName }}
{{- else if and .Values.tls.certManager.enabled (not .Values.tls.certManager.includeInternalNames) }}{{ include "distro.dnsNames" . | fromJsonArray | first }}
{{- end }}
{{- end }}

{{/* URLs of the mirror, as workers are told them: the values', and last the service's, which only pods reach. */}}
{{- define "distro.mirrors" -}}
{{- $service := printf "http://%s-mirror.%s.svc:%v" (include "distro.fullname" .) .Release.Namespace .Values.mirror.service.port }}
{{- join "," (append .Values.mirror.urls $service) }}
{{- end }}

{{/* What every pod has in common. */}}
{{- define "distro.podSettings" -}}
serviceAccountName: {{ include "distro.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end }}

{{/* Arguments of a client. Arguments: root, token (its file, empty: none is shown). */}}
{{- define "distro.clientArgs" -}}
{{- if .root.Values.insecure }}
- --insecure
{{- else }}
{{- if .root.Values.tls.caKey }}
- --ca=/etc/distro/ca/ca.crt
{{- end }}
{{- with include "distro.serverName" .root }}
- --server_name={{ . }}
{{- end }}
- --token_file={{ .token }}
{{- end }}
{{- end }}

{{- define "distro.clientMounts" -}}
{{- if not .Values.insecure }}
{{- if .Values.tls.caKey }}
- {name: ca, mountPath: /etc/distro/ca, readOnly: true}
{{- end }}
- {name: token, mountPath: /etc/distro/token, readOnly: true}
{{- end }}
{{- end }}

{{/* Arguments: root, secret, entry (empty: all of them, under their own names). */}}
{{- define "distro.clientVolumes" -}}
{{- if not .root.Values.insecure }}
{{- if .root.Values.tls.caKey }}
- name: ca
  secret:
    secretName: {{ include "distro.tlsSecret" .root }}
    items: [{key: {{ .root.Values.tls.caKey | quote }}, path: ca.crt}]
{{- end }}
- name: token
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    {{- with .entry }}
    items: [{key: {{ . }}, path: token}]
    {{- end }}
{{- end }}
{{- end }}

{{/* A claim of a StatefulSet. Arguments: persistence, root. */}}
{{- define "distro.claim" -}}
- metadata:
    name: data
    {{- with .persistence.annotations }}
    annotations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    accessModes:
      {{- toYaml .persistence.accessModes | nindent 6 }}
    {{- with .persistence.storageClass }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources:
      requests:
        storage: {{ .persistence.size }}
{{- end }}

{{/* Newer servers let the claim go with the release; older ones always keep it. Arguments: persistence, root. */}}
{{- define "distro.claimRetention" -}}
{{- if semverCompare ">=1.27.0-0" .root.Capabilities.KubeVersion.Version }}
persistentVolumeClaimRetentionPolicy:
  whenDeleted: {{ .persistence.whenDeleted }}
  whenScaled: Retain
{{- end }}
{{- end }}

{{/* Argument: values with nodeSelector, tolerations, affinity and topologySpreadConstraints. */}}
{{- define "distro.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Ingress of a pod's HTTP port: what networkPolicy.httpFrom says. Argument: root. */}}
{{- define "distro.httpIngress" -}}
- ports:
    - {port: http, protocol: TCP}
  from:
    {{- if .Values.networkPolicy.httpFrom }}
    {{- toYaml .Values.networkPolicy.httpFrom | nindent 4 }}
    {{- else }}
    - namespaceSelector: {}
    {{- end }}
{{- end }}

{{/* Egress of a client of the aggregator: names, gRPC, the mirror, and what the values add. Arguments: root, more. */}}
{{- define "distro.clientEgress" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
- to:
    - podSelector:
        matchLabels:
          {{- include "distro.selectorLabels" .root | nindent 10 }}
          app.kubernetes.io/component: aggregator
  ports:
    - {port: grpc, protocol: TCP}
{{- if .root.Values.mirror.enabled }}
- to:
    - podSelector:
        matchLabels:
          {{- include "distro.selectorLabels" .root | nindent 10 }}
          app.kubernetes.io/component: mirror
  ports:
    - {port: http, protocol: TCP}
{{- end }}
{{- with .more }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of a scraped target. `instance` is the release's, not the pod's address, which changes when the pod moves; `run`
tells runs apart, with the namespace, which the operator adds. Arguments: root, job, instance. */}}
{{- define "distro.targetLabels" -}}
- {targetLabel: job, replacement: {{ .job }}}
- {targetLabel: instance, replacement: {{ .instance | quote }}}
- {targetLabel: run, replacement: {{ .root.Release.Name | quote }}}
{{- end }}

{{/* Of two pods of an aggregator, the target is the one that serves: both would have the same labels. */}}
{{- define "distro.servingPod" -}}
{{- if gt (int .Values.replicaCount) 1 -}}
- {sourceLabels: [__meta_kubernetes_endpoint_ready, __meta_kubernetes_endpointslice_endpoint_conditions_ready], regex: ".*true.*", action: keep}
{{- end }}
{{- end }}

{{/* The alert that a target of this run is missing. Arguments: root, alert, job, instance, for, severity, what. */}}
{{- define "distro.missingTarget" -}}
- alert: {{ .alert }}
  expr: absent(up{job={{ .job | quote }},namespace={{ .root.Release.Namespace | quote }},run={{ .root.Release.Name | quote }},instance={{ .instance | quote }}})
  for: {{ .for }}
  labels:
    severity: {{ .severity }}
  annotations:
    summary: Prometheus has no target for the {{ .what }} of a run.
    description: {{ printf "The pod of %s in namespace %s is missing, or its ServiceMonitor is." .instance .root.Release.Namespace | quote }}
    runbook_url: {{ printf "%s%s" (default "{{ $externalURL }}/consoles/distro-runbooks.html#" .root.Values.prometheusRule.runbookBaseUrl) .alert | quote }}
{{- end }}
