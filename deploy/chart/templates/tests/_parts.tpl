{{- define "troupe.testLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ include "troupe.name" . }}
app.kubernetes.io/component: test
{{- end }}

{{/* WEIGHT: Helm makes them in this order. Of a test that fails the pod stays until the next, and before Helm 3.18 all. */}}
{{- define "troupe.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- define "troupe.testPod" -}}
restartPolicy: Never
terminationGracePeriodSeconds: 5
enableServiceLinks: false
securityContext: {{- include "troupe.podSecurity" . | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- define "troupe.testContainer" -}}
image: {{ include "troupe.image" (list . .Values.controller) | quote }}
imagePullPolicy: {{ .Values.imagePullPolicy }}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext: {{- include "troupe.containerSecurity" . | nindent 2 }}
{{- end }}
