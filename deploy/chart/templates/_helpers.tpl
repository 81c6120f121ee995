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
