package proc

import (
	"fmt"
	"os"
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

// ExtentEnd returns the ID after the last one of the line that maps an ID, -1 if none does. The text is that of uid_map or gid_map.
func ExtentEnd(text string, id int64) int64 {
	for line := range strings.Lines(text) {
		var first, outside, count int64
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 && id >= first && id-first < count {
			return first + count
		}
	}
	return -1
}

// UIDOutside returns the ID of a user outside of the user namespace of this process, -1 if it has none. In the first user namespace it is
// the same one.
func UIDOutside(uid int) int {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil { // a kernel without user namespaces
		return uid
	}
	return outsideOf(string(text), uid)
}

// outsideOf returns what a user namespace maps an ID to, -1 if it does not map it. The text is that of uid_map.
func outsideOf(text string, uid int) int {
	for line := range strings.Lines(text) {
		var first, outside, count int64
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 && int64(uid) >= first && int64(uid)-first < count {
			return int(outside + int64(uid) - first)
		}
	}
	return -1
}
