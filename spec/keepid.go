package spec

import (
	"strconv"
	"strings"
)

// MaxKeepID is the maximum of [Pod.KeepID].
const MaxKeepID = 1<<16 - 1

// ParseKeepID returns the [Pod.KeepID] of a user namespace mode of Podman, such as keep-id:uid=1000,gid=1000. Without a number it would be
// the ID of a user who is not known yet. A group must have the number of the user.
func ParseKeepID(mode string) (id int64, ok bool) {
	options, found := strings.CutPrefix(mode, "keep-id:")
	if !found {
		return 0, false
	}
	ids := map[string]int64{}
	for option := range strings.SplitSeq(options, ",") {
		key, text, _ := strings.Cut(option, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > MaxKeepID || key != "uid" && key != "gid" {
			return 0, false
		}
		ids[key] = n
	}
	id = ids["uid"]
	group, grouped := ids["gid"]
	return id, id != 0 && (!grouped || group == id)
}
