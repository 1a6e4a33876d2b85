package tartree

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// attributeKey begins the keys of extended attributes in a PAX header, as star(1), GNU tar and bsdtar write them.
const attributeKey = "SCHILY.xattr."

// isCopied reports whether an extended attribute is copied: those of users, access control lists and file capabilities. Others belong to
// the host, such as SELinux labels.
func isCopied(name string) bool {
	return strings.HasPrefix(name, "user.") ||
		slices.Contains([]string{"security.capability", "system.posix_acl_access", "system.posix_acl_default"}, name)
}

// attributesOf returns the extended attributes of a file that are copied. A file system without them has none.
func attributesOf(f *os.File) (map[string]string, error) {
	const maxList, maxValue = 64 << 10, 64 << 10 // of the kernel
	names := make([]byte, maxList)
	n, err := unix.Flistxattr(int(f.Fd()), names)
	if errors.Is(err, unix.ENOTSUP) || n == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := map[string]string{}
	for name := range bytes.SplitSeq(bytes.TrimRight(names[:n], "\x00"), []byte{0}) {
		if !isCopied(string(name)) {
			continue
		}
		value := make([]byte, maxValue)
		size, err := unix.Fgetxattr(int(f.Fd()), string(name), value)
		if errors.Is(err, unix.ENODATA) { // removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		list[string(name)] = string(value[:size])
	}
	return list, nil
}

// Extended returns the extended attributes of an entry that are copied.
func Extended(h *tar.Header) map[string]string {
	var list map[string]string
	for key, value := range h.PAXRecords {
		if name, found := strings.CutPrefix(key, attributeKey); found && isCopied(name) {
			if list == nil {
				list = map[string]string{}
			}
			list[name] = value
		}
	}
	return list
}
