{{/* What the schema cannot say in words that help. */}}
{{- define "distro.validate" -}}
{{- $tls := .Values.tls }}
{{- if not .Values.image.registry }}
{{- fail (printf "image.registry is required: no images are published. Build and push them from the checkout, then give the registry:\n  for image in aggregator tools; do docker build -t REGISTRY/distro/$image:%s -f docker/$image.Dockerfile . && docker push REGISTRY/distro/$image:%s; done\n  helm install ... --set image.registry=REGISTRY" .Chart.AppVersion .Chart.AppVersion) }}
{{- end }}
{{- if and (gt (int .Values.replicaCount) 1) (not .Values.log.url) }}
{{- fail "replicaCount: 2 needs log.url: without a bucket a run's log has one writer, on its volume." }}
{{- end }}
{{- if and (gt (int .Values.replicaCount) 1) .Values.podDisruptionBudget.enabled }}
{{- fail "podDisruptionBudget.enabled contradicts replicaCount: 2: a pod that waits is not ready, so the budget would hold up every drain. A pod that is drained hands the run over." }}
{{- end }}
{{- if and .Values.log.url (not .Values.log.existingSecret) (not .Values.extraEnv) }}
{{- fail "log.existingSecret is required with log.url: a secret with the entries AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or extraEnv says where the credentials are)." }}
{{- end }}
{{- if and $tls.certManager.enabled (not $tls.certManager.includeInternalNames) (eq (include "distro.dnsNames" .) "[]") }}
{{- fail "tls.certManager.dnsNames or gateway.hostname is required with includeInternalNames: false: the certificate needs a name." }}
{{- end }}
{{- if and .Values.joinTest.enabled (or (not .Values.joinTest.volume) (not .Values.joinTest.path)) }}
{{- fail "joinTest.volume and joinTest.path are required with joinTest.enabled: where the run's training data lies." }}
{{- end }}
{{- if and .Values.joinTest.enabled (not .Values.insecure) (not .Values.joinTest.tokenSecret) }}
{{- fail (printf "joinTest.tokenSecret is required with TLS: a secret with the entry token, that of the worker %s-join." (include "distro.fullname" .)) }}
{{- end }}
{{- if .Values.insecure }}
{{- if or $tls.existingSecret $tls.certManager.enabled .Values.auth.existingSecret .Values.auth.clientCASecret }}
{{- fail "insecure: true contradicts tls and auth: plaintext uses none of them. Give one or the other." }}
{{- end }}
{{- else }}
{{- if not (or $tls.existingSecret $tls.certManager.enabled) }}
{{- fail "TLS is required: set tls.existingSecret (a secret with tls.crt, tls.key and ca.crt) or tls.certManager.enabled. On a network that is trusted, insecure: true talks plaintext instead and authenticates nobody." }}
{{- end }}
{{- if and $tls.existingSecret $tls.certManager.enabled }}
{{- fail "tls.existingSecret and tls.certManager.enabled contradict each other: the certificate comes from one of them." }}
{{- end }}
{{- if not .Values.auth.existingSecret }}
{{- fail "auth.existingSecret is required with TLS: a secret with the entries tokens, archiver-token and viewer-token. README.md, \"Credentials\", has the commands that make it." }}
{{- end }}
{{- if and $tls.certManager.enabled (not $tls.certManager.issuerRef.name) }}
{{- fail "tls.certManager.issuerRef.name is required with tls.certManager.enabled: the issuer that signs the certificate." }}
{{- end }}
{{- if and .Values.workers.enabled (not .Values.workers.tokensSecret) }}
{{- fail "workers.tokensSecret is required with TLS: a secret with an entry for each pod's name, its token." }}
{{- end }}
{{- end }}
{{- if and .Values.run.config (not .Values.run.initModel.config) }}
{{- fail "run.initModel.config is required with run.config: the config.json of the initial model. Leave both empty to create the run with distroctl." }}
{{- end }}
{{- if and .Values.run.initModel.config (not .Values.run.config) }}
{{- fail "run.config is required with run.initModel.config: the run's configuration (run.json)." }}
{{- end }}
{{- if and .Values.prometheusRule.enabled (not .Values.serviceMonitor.enabled) }}
{{- fail "prometheusRule.enabled needs serviceMonitor.enabled: its alert looks for the targets that the ServiceMonitor makes." }}
{{- end }}
{{- if and .Values.gateway.enabled .Values.insecure }}
{{- fail "gateway.enabled needs TLS: a TLSRoute passes TLS through by the name in it." }}
{{- end }}
{{- if and .Values.gateway.enabled (or (not .Values.gateway.hostname) (not .Values.gateway.parentRefs)) }}
{{- fail "gateway.hostname and gateway.parentRefs are required with gateway.enabled." }}
{{- end }}
{{- if and .Values.workers.enabled (or (not .Values.workers.data.existingClaim) (not .Values.workers.data.path)) }}
{{- fail "workers.data.existingClaim and workers.data.path are required with workers.enabled: where the training data lies." }}
{{- end }}
{{- end }}
