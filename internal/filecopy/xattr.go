package filecopy

import (
	"archive/tar"
	"errors"
	"fmt"
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

// maxAttributes bounds the names and values of a file's extended attributes in a header. Readers of PAX headers accept 1 MiB in total.
const maxAttributes = 512 << 10

// whyLeftOut returns why an extended attribute is not copied that makes the size of all this large; "": it is copied.
func whyLeftOut(name string, size int) string {
	switch {
	case strings.Contains(name, "="):
		return "archives support no = in names"
	case size > maxAttributes:
		return fmt.Sprintf("the extended attributes of the file have more than %d KiB", maxAttributes>>10)
	}
	return ""
}

// attributesOf returns the extended attributes of a file that are copied, and warns of those that an archive cannot have. A file system
// without them has none.
func attributesOf(f *os.File, name string, warn Warn) (map[string]string, error) {
	const maxList, maxValue = 64 << 10, 64 << 10 // of the kernel
	names, value := make([]byte, maxList), make([]byte, maxValue)
	n, err := unix.Flistxattr(int(f.Fd()), names)
	switch {
	case errors.Is(err, unix.ENOTSUP), err == nil && n == 0:
		return nil, nil
	case errors.Is(err, unix.E2BIG):
		warn("%q: extended attributes left out: their names have more than %d KiB", name, maxList>>10)
		return nil, nil
	case err != nil:
		return nil, err
	}
	list := map[string]string{}
	var size int
	for attribute := range strings.SplitSeq(strings.TrimRight(string(names[:n]), "\x00"), "\x00") {
		if !isCopied(attribute) {
			continue
		}
		n, err := unix.Fgetxattr(int(f.Fd()), attribute, value)
		if errors.Is(err, unix.ENODATA) { // removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if why := whyLeftOut(attribute, size+len(attribute)+n); why != "" {
			warn("%q: extended attribute %q left out: %s", name, attribute, why)
			continue
		}
		size += len(attribute) + n
		list[attribute] = string(value[:n])
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
