package namespace

import (
	"fmt"
	"strings"
)

// LastMapped returns the last ID of those from 0 on that a user namespace maps without a gap, -1 if it maps none. The text is that of
// uid_map or gid_map, see user_namespaces(7).
func LastMapped(text string) int64 {
	last := int64(-1)
	for again := true; again; {
		again = false
		for line := range strings.Lines(text) {
			var first, outside, count int64
			if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 && first <= last+1 && first+count-1 > last {
				last, again = first+count-1, true
			}
		}
	}
	return last
}
