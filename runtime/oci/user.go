package oci

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/spec"
)

// User is the user of a container in the form of an image's configuration. Names refer to files in the image.
type User struct {
	// Primary is a user, or user:group, each a name or a number. A user without a group has the group from the image's
	// /etc/passwd, or 0.
	Primary string
	// Member is the user whose groups in the image's /etc/group are added. Empty means none.
	Member string
	// Groups are supplemental groups, sorted and without duplicates.
	Groups []uint32
}

// UserOf returns the user of a container with an image whose user is imageUser (empty for root). It rejects a container that runs
// as root, or may do so, if runAsNonRoot is set. Rules and messages are the kubelet's, except that the image's group is kept, as
// Docker does. The kubelet drops it (kubernetes#61967). The error contains uid.
func UserOf(pod *spec.Pod, c *spec.Container, uid, imageUser string) (User, error) {
	own, podCtx := contextOf(c), podContextOf(pod)
	name, group, _ := strings.Cut(imageUser, ":")
	name = cmp.Or(name, "0")
	id := cmp.Or(own.RunAsUser, podCtx.RunAsUser)
	if nonRoot := cmp.Or(own.RunAsNonRoot, podCtx.RunAsNonRoot); nonRoot != nil && *nonRoot {
		if problem := mayBeRoot(id, name); problem != "" {
			return User{}, fmt.Errorf("%s (pod: \"%s_default(%s)\", container: %s)", problem, pod.Name, uid, c.Name)
		}
	}
	if id != nil {
		name, group = strconv.FormatInt(*id, 10), ""
	}
	u := User{Primary: name, Member: name}
	if id := cmp.Or(own.RunAsGroup, podCtx.RunAsGroup); id != nil {
		group = strconv.FormatInt(*id, 10)
	}
	if group != "" {
		u.Primary += ":" + group
	}
	if podCtx.SupplementalGroupsPolicy == "Strict" {
		u.Member = ""
	}
	for _, id := range podCtx.SupplementalGroups {
		u.Groups = append(u.Groups, uint32(id)) // the pod file was checked
	}
	if podCtx.FSGroup != nil {
		u.Groups = append(u.Groups, uint32(*podCtx.FSGroup)) // the pod file was checked
	}
	slices.Sort(u.Groups)
	u.Groups = slices.Compact(u.Groups)
	return u, nil
}

// mayBeRoot returns why a container with runAsNonRoot may run as root. id is the user of the pod file, or nil, and image the user
// of the image.
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

// contextOf returns a container's security context, or an empty one.
func contextOf(c *spec.Container) *spec.SecurityContext {
	return cmp.Or(c.SecurityContext, &spec.SecurityContext{})
}

// podContextOf returns a pod's security context, or an empty one.
func podContextOf(pod *spec.Pod) *spec.PodSecurityContext {
	return cmp.Or(pod.SecurityContext, &spec.PodSecurityContext{})
}
