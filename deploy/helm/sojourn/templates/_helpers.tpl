{{- define "sojourn.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels by which a part is selected: (list . "server") */}}
{{- define "sojourn.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "sojourn.labels" -}}
{{- $root := index . 0 -}}
{{ include "sojourn.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{/* An image by its values: (list . .Values.images.server) */}}
{{- define "sojourn.image" -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest | quote }}
{{- else -}}
{{ printf "%s:%s" $image.repository ($image.tag | default (index . 0).Chart.AppVersion) | quote }}
{{- end -}}
{{- end -}}

{{/* What every pod has: (list . uid) */}}
{{- define "sojourn.pod" -}}
{{- $root := index . 0 -}}
serviceAccountName: {{ include "sojourn.name" $root }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ index . 1 }}
  runAsGroup: {{ index . 1 }}
  fsGroup: {{ index . 1 }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "sojourn.container" -}}
imagePullPolicy: {{ .Values.images.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "sojourn.hasProxy" -}}
{{- if or .Values.proxy.enabled (gt (int .Values.server.replicas) 1) -}}yes{{- end -}}
{{- end -}}

{{/* The component that takes what comes from outside. */}}
{{- define "sojourn.front" -}}
{{- if include "sojourn.hasProxy" . -}}proxy{{- else -}}server{{- end -}}
{{- end -}}

{{- define "sojourn.serverHost" -}}
{{- $name := include "sojourn.name" (index . 0) -}}
{{ $name }}-server-{{ index . 1 }}.{{ $name }}-servers.{{ (index . 0).Release.Namespace }}.svc.{{ (index . 0).Values.clusterDomain }}
{{- end -}}

{{/* All servers: whoever is given all of them finds the active one. */}}
{{- define "sojourn.servers" -}}
{{- $urls := list -}}
{{- range $i := until (int .Values.server.replicas) -}}
{{- $urls = append $urls (printf "http://%s:8642" (include "sojourn.serverHost" (list $ $i))) -}}
{{- end -}}
{{ join "," $urls | quote }}
{{- end -}}

{{/* The variables of the store, and the Secret with its keys: (list . .Values.blobs.serverSecret) */}}
{{- define "sojourn.storeEnv" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.blobs.url -}}
- name: SOJOURN_BLOBS
  value: {{ $root.Values.blobs.url | quote }}
{{- range $name, $value := $root.Values.blobs.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "sojourn.check" -}}
{{- if and (gt (int .Values.server.replicas) 1) (eq .Values.journal.kind "sqlite") -}}
{{- fail "several servers need a journal that they share: journal.kind redis or external" -}}
{{- end -}}
{{- if and (gt (int .Values.server.replicas) 1) (not .Values.blobs.url) -}}
{{- fail "several servers need a store that they share: blobs.url" -}}
{{- end -}}
{{- if and .Values.assimilators.enabled (not .Values.blobs.url) -}}
{{- fail "assimilators need a store that they share with the server: blobs.url" -}}
{{- end -}}
{{- if gt (int .Values.assimilators.autoscaling.min) (int .Values.assimilators.autoscaling.max) -}}
{{- fail "assimilators.autoscaling.min is over max" -}}
{{- end -}}
{{- end -}}

{{/* What parts of network policies let through. */}}
{{- define "sojourn.toDns" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end -}}
{{- define "sojourn.toServers" -}}
- to:
    - podSelector:
        matchLabels: {{- include "sojourn.selector" (list . "server") | nindent 10 }}
  ports:
    - {protocol: TCP, port: 8642}
{{- end -}}
{{- define "sojourn.toStore" -}}
{{- if .Values.blobs.url -}}
- to:
    {{- range .Values.networkPolicy.storeCidrs }}
    - ipBlock: {cidr: {{ . }}}
    {{- end }}
  ports:
    {{- range .Values.networkPolicy.storePorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}
{{- end -}}
