{{/* What the operator may do where its jobs are. It gives each job's master a Role, and may give no
right that it does not have itself: these are marked "as masters". */}}
{{- define "troupe.rules" -}}
- apiGroups: [elastic.iml.github.io]
  resources: [elasticjobs, scaleplans] # as masters
  verbs: [get, list, watch, patch, update]
- apiGroups: [elastic.iml.github.io]
  resources: [elasticjobs/status, scaleplans/status] # as masters
  verbs: [get, patch, update]
# Without these no object of theirs may name them as its owner, where the server looks at that.
- apiGroups: [elastic.iml.github.io]
  resources: [elasticjobs/finalizers, scaleplans/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods, services, serviceaccounts] # as masters: pods
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods/status] # as masters
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps] # as masters
  verbs: [get, list, watch, create, update, patch, delete]
# A job's token. Each is asked for by the name that the operator gave it; without list and watch no
# answer holds what others keep.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [events] # as masters
  verbs: [create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings] # of masters
  verbs: [get, create, patch, delete]
{{- if .Values.gangScheduling.enabled }}
- apiGroups: [{{ include "troupe.podGroups" . }}]
  resources: [podgroups]
  verbs: [get, create, patch, delete]
{{- end }}
{{- end }}
