{{- define "nodescope.name" -}}
{{- if contains "nodescope" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-nodescope" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "nodescope.selector" -}}
app.kubernetes.io/name: nodescope
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "nodescope.labels" -}}
{{ include "nodescope.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: nodescope
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "nodescope.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}{{ else }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* A cluster-wide name: two releases in two namespaces must not share a ClusterRole. */}}
{{- define "nodescope.clusterName" -}}
{{ .root.Release.Namespace }}-{{ include "nodescope.name" .root }}-{{ .component }}
{{- end }}

{{- define "nodescope.account" -}}
{{ include "nodescope.name" .root }}-{{ .component }}
{{- end }}

{{/* What every server takes: token and TLS from Secrets. */}}
{{- define "nodescope.guardArgs" -}}
{{- if .Values.security.tokenSecret }}
- --token-file=/etc/nodescope/token/token
{{- end }}
{{- if .Values.security.tlsSecret }}
- --tls-cert=/etc/nodescope/tls/tls.crt
- --tls-key=/etc/nodescope/tls/tls.key
{{- if .Values.security.clientCa }}
- --tls-client-ca=/etc/nodescope/tls/ca.crt
{{- end }}
{{- end }}
{{- end }}

{{- define "nodescope.guardMounts" -}}
{{- if .Values.security.tokenSecret }}
- {name: token, mountPath: /etc/nodescope/token, readOnly: true}
{{- end }}
{{- if .Values.security.tlsSecret }}
- {name: tls, mountPath: /etc/nodescope/tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "nodescope.guardVolumes" -}}
{{- if .Values.security.tokenSecret }}
- name: token
  secret: {secretName: {{ .Values.security.tokenSecret | quote }}, items: [{key: token, path: token}]}
{{- end }}
{{- if .Values.security.tlsSecret }}
- name: tls
  secret: {secretName: {{ .Values.security.tlsSecret | quote }}}
{{- end }}
{{- end }}

{{/* Probes have a listener of their own: plain HTTP without a token, which a crowd elsewhere does not keep waiting. */}}
{{- define "nodescope.probe" -}}
httpGet: {path: {{ .path }}, port: {{ .port }}}
{{- end }}

{{/* What no container of ours needs. */}}
{{- define "nodescope.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* A port that takes FPGA events and nothing else cannot be another's. */}}
{{- define "nodescope.fpgaPort" -}}
{{- $taken := concat (list .Values.agent.ports.metrics .Values.agent.ports.probes .Values.viewer.port .Values.viewer.probePort .Values.pcm.port) .Values.agent.ports.extra }}
{{- range $taken }}{{ if eq (int .) (int $.Values.fpga.port) }}{{ fail (printf "fpga.port: %d is another listener of the same pod; choose a port that is not among %s" (int .) (join ", " $taken)) }}{{ end }}{{ end }}
{{- .Values.fpga.port }}
{{- end }}

{{/* The beginning of this day, in seconds since 1970: the same in all files of one rendering. */}}
{{- define "nodescope.today" -}}
{{ mul (div (now | unixEpoch | int64) 86400) 86400 }}
{{- end }}

{{/* The day on which helm made the certificates of a Secret; 0 where it does not say. */}}
{{- define "nodescope.madeAt" -}}
{{- $about := get (. | default dict) "metadata" | default dict }}
{{- get (get $about "annotations" | default dict) "nodescope.io/made-at" | default "0" }}
{{- end }}

{{/* Certificates that are valid for ten years are kept for one; empty where they are older. */}}
{{- define "nodescope.isYoung" -}}
{{- if lt (sub (include "nodescope.today" . | int64) (. | int64)) 31536000 }}yes{{ end }}
{{- end }}

{{/* The certificates of extender and scheduler. */}}
{{- define "nodescope.verbsSecret" -}}
{{ .Values.extender.tls.serverSecret | default (printf "%s-extender-tls" (include "nodescope.name" .)) }}
{{- end }}

{{- define "nodescope.schedulerSecret" -}}
{{ .Values.extender.tls.clientSecret | default (printf "%s-scheduler-tls" (include "nodescope.name" .)) }}
{{- end }}

{{/* The certificate that the API server sees of the adapter. */}}
{{- define "nodescope.adapterSecret" -}}
{{ .Values.adapter.tls.secret | default (printf "%s-adapter-tls" (include "nodescope.name" .)) }}
{{- end }}

{{/* The pods of this release's agents, as a query writes it. */}}
{{- define "nodescope.agentLabels" -}}
app.kubernetes.io/name=nodescope,app.kubernetes.io/instance={{ .Release.Name }},app.kubernetes.io/component=agent
{{- end }}

{{/* Where pods reach the extender; a scheduler in the node's network has no names of Services, and uses the address. */}}
{{- define "nodescope.extenderHost" -}}
{{ include "nodescope.name" . }}-extender.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Pods of one component, whatever else its labels say. */}}
{{- define "nodescope.toApiServer" -}}
# Names of Services, and the API server: its address is the node's, which no selector names.
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- range .Values.networkPolicy.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
{{- end }}
{{- end }}
