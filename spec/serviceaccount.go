package spec

import (
	"cmp"
	"slices"
	"strings"
)

// defaultServiceAccount is the service account of a pod that does not set one
// (k8s.io/kubernetes/plugin/pkg/admission/serviceaccount).
const defaultServiceAccount = "default"

// ServiceAccount returns the name of the service account of the pod.
func (p *Pod) ServiceAccount() string { return cmp.Or(p.ServiceAccountName, defaultServiceAccount) }

// serviceAccount checks the name of the service account. It warns of a name that
// permissions in a cluster may be bound to.
func (v *validator) serviceAccount() {
	field := &v.pod.ServiceAccountName
	v.name(field, dnsSubdomain)
	if *field != "" && *field != defaultServiceAccount {
		v.warn(field, "has no permissions and no token: there is no API server, only the downward API uses the name")
	}
}

// serviceAccountAlias replaces serviceAccount, the deprecated name of
// serviceAccountName. As in the API server, serviceAccountName takes precedence.
func serviceAccountAlias(root *node) {
	const alias, name = "serviceAccount", "serviceAccountName"
	n := root.child(alias)
	if n == nil {
		return
	}
	if set := root.child(name); set != nil && set.value != "" {
		root.remove(alias)
		return
	}
	root.remove(name)
	delete(root.index, alias)
	n.key, root.index[name] = name, n
}

// dropTokens removes the volumes and mounts that the admission controller of
// service accounts adds to every pod of a cluster. There are no service
// accounts.
func (o *Options) dropTokens(root *node) Problems {
	volumes := root.child("volumes")
	if volumes == nil || volumes.kind != kindArray {
		return nil
	}
	var problems Problems
	names := map[any]bool{}
	volumes.items = slices.DeleteFunc(volumes.items, func(volume *node) bool {
		if !isToken(volume) {
			return false
		}
		names[volume.child("name").value] = true
		problems = append(problems, o.dropped(volume)...)
		return true
	})
	if len(names) == 0 {
		return nil
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			mounts := c.child("volumeMounts")
			if mounts == nil || mounts.kind != kindArray {
				continue
			}
			mounts.items = slices.DeleteFunc(mounts.items, func(mount *node) bool {
				name := mount.child("name")
				if name == nil || !names[name.value] {
					return false
				}
				problems = append(problems, o.dropped(mount)...)
				return true
			})
		}
	}
	return problems
}

// isToken reports whether a volume has the name and a source of a token volume
// (k8s.io/kubernetes/plugin/pkg/admission/serviceaccount).
func isToken(volume *node) bool {
	name := volume.child("name")
	if name == nil || name.kind != kindString {
		return false
	}
	text, _ := name.value.(string)
	projected := volume.child("projected")
	return strings.HasPrefix(text, "kube-api-access-") && slices.ContainsFunc(items(projected.child("sources")), func(source *node) bool {
		return source.child("serviceAccountToken") != nil
	})
}
