{{/* What all objects are called, 53 characters at most: the longest ending, -machines, leaves 63. */}}
{{- define "troupe.name" -}}
{{- .Release.Name | replace "." "-" | trunc 53 | trimSuffix "-" -}}
{{- end }}

{{- define "troupe.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ include "troupe.name" . }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "troupe.labels" -}}
{{ include "troupe.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* With those by which a Prometheus finds its monitors. */}}
{{- define "troupe.monitorLabels" -}}
{{ merge (fromYaml (include "troupe.labels" .)) (.Values.podMonitor.labels | default dict) | toYaml }}
{{- end }}

{{/* (list ROOT COMPONENT): a component's image. Its value is {name, tag}, or a name with the tag beside it. */}}
{{- define "troupe.image" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $image := $component.image -}}
{{- if kindIs "string" $image -}}
{{- $image = dict "name" $image -}}
{{- end -}}
{{- $tag := coalesce $image.tag $component.tag $root.Chart.AppVersion -}}
{{- with $root.Values.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{ $image.name }}{{ if hasPrefix "sha256:" $tag }}@{{ else }}:{{ end }}{{ $tag }}
{{- end }}

{{- define "troupe.marks" -}}
{{- if ne .Values.machines.markFaulty "none" }}yes{{ end -}}
{{- end }}

{{/* Of the scheduler that is chosen, and no other. */}}
{{- define "troupe.podGroups" -}}
{{- if eq .Values.gangScheduling.scheduler "volcano" }}scheduling.volcano.sh{{ else }}scheduling.x-k8s.io{{ end -}}
{{- end }}

{{- define "troupe.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "troupe.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
