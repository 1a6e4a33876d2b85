package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// createdByPodman is the comment at the top of what podman generate kube prints.
var createdByPodman = lazyregexp.New(`(?m)^# Created with podman-`)

// podmanAnnotations are the prefixes of the annotations that only Podman reads. Mount options such as Z are for SELinux.
var podmanAnnotations = []string{"io.podman.annotations.", "bind-mount-options", "io.kubernetes.cri-o."}

// isPodmans reports whether podman generate kube has written an object.
func (s *stream) isPodmans(n *node) bool {
	own := func(c *node) bool {
		return strings.HasPrefix(c.key, podmanAnnotations[0]) || c.key == podmanAnnotations[1]
	}
	for _, metadata := range []*node{n.child("metadata"), n.child("spec").child("template").child("metadata")} {
		if slices.ContainsFunc(items(metadata.child("annotations")), own) {
			return true
		}
	}
	return s.byPodman
}

// podman takes the names and capabilities of Podman, which the API of Kubernetes rejects. Names are changed in each place.
func (s *stream) podman(x *object) {
	pod := x.n.child("spec")
	metadata := []*node{x.n.child("metadata")}
	if template := pod.child("template"); template != nil {
		metadata, pod = append(metadata, template.child("metadata")), template.child("spec")
	}
	for _, m := range metadata {
		if annotations := m.child("annotations"); annotations != nil && annotations.kind == kindTable {
			for _, c := range slices.Clone(annotations.items) {
				if slices.ContainsFunc(podmanAnnotations, func(prefix string) bool { return strings.HasPrefix(c.key, prefix) }) {
					s.problems = append(s.problems, s.o.dropped(c)...)
					annotations.remove(c.key)
				}
			}
		}
		s.rename(m.child("name"), true)
	}
	for _, v := range items(pod.child("volumes")) {
		s.rename(v.child("name"), false)
		s.rename(v.child("persistentVolumeClaim").child("claimName"), false)
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(pod.child(list)) {
			s.rename(c.child("name"), true)
			for _, mount := range items(c.child("volumeMounts")) {
				s.rename(mount.child("name"), false)
			}
			capabilities := c.child("securityContext").child("capabilities")
			for _, change := range []string{"add", "drop"} {
				for _, capability := range items(capabilities.child(change)) {
					if text := textOf(capability); text != "" {
						capability.value = strings.TrimPrefix(text, "CAP_")
					}
				}
			}
		}
	}
}

// notInNames are the characters that names of Podman may have, and names of Kubernetes not.
var notInNames = lazyregexp.New(`[^a-z0-9.-]+`)

// rename changes a name to one that Kubernetes accepts. It says so if it is the name by which people know the object.
func (s *stream) rename(n *node, say bool) {
	text := textOf(n)
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-.")
	if text == "" || name == text || name == "" {
		return
	}
	n.value = name
	if !say {
		return
	}
	w := warnAt(n, fmt.Sprintf("the name is %s here: names of Kubernetes have no other characters than a-z, 0-9 and -", quote(name)))
	w.Hint = "use " + name + " in commands, or change the name in the file"
	s.problems = append(s.problems, w)
}
