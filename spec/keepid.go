package spec

import (
	"cmp"
	"strconv"
	"strings"
)

// MaxKeepID is the maximum of [Pod.KeepID].
const MaxKeepID = 1<<16 - 1

// ParseKeepID returns the [Pod.KeepID] of a user namespace mode of Podman, such as keep-id:uid=1000,gid=1000. Without a number it would be
// the ID of a user who is not known yet. A group must have the number of the user. HasGroup is false if there is none: the group has the
// number of the user's group on the host then.
func ParseKeepID(mode string) (id int64, hasGroup, ok bool) {
	options, found := strings.CutPrefix(mode, "keep-id:")
	if !found {
		return 0, false, false
	}
	ids := map[string]int64{}
	for option := range strings.SplitSeq(options, ",") {
		key, text, _ := strings.Cut(option, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > MaxKeepID || key != "uid" && key != "gid" {
			return 0, false, false
		}
		ids[key] = n
	}
	id = ids["uid"]
	group, hasGroup := ids["gid"]
	return id, hasGroup, id != 0 && (!hasGroup || group == id)
}

// RunAsKept sets the user and the group of a container to [Pod.KeepID], unless it has a user of its own, as Podman does.
func (c *Container) RunAsKept(id int64) {
	if c.SecurityContext == nil {
		c.SecurityContext = &SecurityContext{}
	}
	if s := c.SecurityContext; s.RunAsUser == nil {
		s.RunAsUser, s.RunAsGroup = &id, cmp.Or(s.RunAsGroup, &id)
	}
}
