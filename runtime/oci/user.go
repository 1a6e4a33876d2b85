package oci

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
)

// User is as whom a container runs, in the words of an image's configuration: names are those of the image's own files.
type User struct {
	// Primary is a user, or a user and a group with a colon between, each a name or a number. A user alone has the group
	// that the image's /etc/passwd gives it, or 0.
	Primary string
	// Member is the user whose groups in the image's /etc/group the process is given too; "" for none of them.
	Member string
	// Groups are further groups of the process, sorted and without duplicates.
	Groups []uint32
}

// UserOf says as whom a container runs whose image says imageUser ("" for root), and refuses one that would be root, or might
// be, where runAsNonRoot forbids it. The rules and the words are the kubelet's, but that an image's group is kept, as Docker
// does: the kubelet forgets it (kubernetes #61967). The pod's UID is told in the error.
func UserOf(pod *spec.Pod, c *spec.Container, uid, imageUser string) (User, error) {
	own, whole := contextOf(c), podContextOf(pod)
	name, group, _ := strings.Cut(imageUser, ":")
	if name == "" {
		name = "0"
	}
	id := cmp.Or(own.RunAsUser, whole.RunAsUser)
	if nonRoot := cmp.Or(own.RunAsNonRoot, whole.RunAsNonRoot); nonRoot != nil && *nonRoot {
		if problem := mayBeRoot(id, name); problem != "" {
			return User{}, fmt.Errorf("%s (pod: \"%s_default(%s)\", container: %s)", problem, pod.Name, uid, c.Name)
		}
	}
	if id != nil {
		name, group = strconv.FormatInt(*id, 10), ""
	}
	u := User{Primary: name, Member: name}
	if id := cmp.Or(own.RunAsGroup, whole.RunAsGroup); id != nil {
		group = strconv.FormatInt(*id, 10)
	}
	if group != "" {
		u.Primary += ":" + group
	}
	if whole.SupplementalGroupsPolicy == "Strict" {
		u.Member = ""
	}
	for _, id := range whole.SupplementalGroups {
		u.Groups = append(u.Groups, uint32(id)) //nolint:gosec // the pod file was checked
	}
	if whole.FSGroup != nil {
		u.Groups = append(u.Groups, uint32(*whole.FSGroup)) //nolint:gosec // the pod file was checked
	}
	slices.Sort(u.Groups)
	u.Groups = slices.Compact(u.Groups)
	return u, nil
}

// mayBeRoot says why a container that must not be root's may be: id is what the pod says, or nil, and image what its image
// says.
func mayBeRoot(id *int64, image string) string {
	number, err := strconv.ParseInt(image, 10, 64)
	switch {
	case id != nil && *id == 0:
		return "container's runAsUser breaks non-root policy"
	case id != nil:
		return ""
	case err != nil:
		return fmt.Sprintf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root", image)
	case number == 0:
		return "container has runAsNonRoot and image will run as root"
	}
	return ""
}

// contextOf is a container's own security context, an empty one for none.
func contextOf(c *spec.Container) *spec.SecurityContext {
	if c.SecurityContext == nil {
		return &spec.SecurityContext{}
	}
	return c.SecurityContext
}

// podContextOf is a pod's security context, an empty one for none.
func podContextOf(pod *spec.Pod) *spec.PodSecurityContext {
	if pod.SecurityContext == nil {
		return &spec.PodSecurityContext{}
	}
	return pod.SecurityContext
}
