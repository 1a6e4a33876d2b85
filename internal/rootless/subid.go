package rootless

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// Ranges are the files with the IDs that users may map, see subuid(5).
const (
	SubUIDs = "/etc/subuid"
	SubGIDs = "/etc/subgid"
)

// minIDs is the fewest IDs that are enough: images have users up to 65534.
const minIDs = 65535

// idRange are IDs of the host.
type idRange struct{ first, count int64 }

func (r idRange) overlaps(other idRange) bool {
	return r.first < other.first+other.count && other.first < r.first+r.count
}

// idsOf returns the ranges of a user in the text of subuid(5).
func idsOf(text, name string, uid int) (ranges []idRange) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 || fields[0] != name && fields[0] != strconv.Itoa(uid) {
			continue
		}
		first, err1 := strconv.ParseInt(fields[1], 10, 64)
		count, err2 := strconv.ParseInt(fields[2], 10, 64)
		r := idRange{first, count}
		// newuidmap rejects IDs that are mapped twice, such as those of a line with the name and one with the ID of the user.
		if err1 == nil && err2 == nil && first > 0 && count > 0 && !slices.ContainsFunc(ranges, r.overlaps) {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

// CheckIDs returns why the user has not enough IDs in a file; nil: it has.
func CheckIDs(file string) error {
	_, err := rangesIn(file)
	return err
}

// rangesIn returns the ranges of the user of this process in a file.
func rangesIn(file string) ([]idRange, error) {
	name := userName()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("find IDs of user %s: %w", name, err)
	}
	ranges, total := idsOf(string(text), name, os.Getuid()), int64(0)
	for _, r := range ranges {
		total += r.count
	}
	if total < minIDs {
		return nil, &Error{
			Message: fmt.Sprintf("%s: user %s has %d IDs, and needs at least %d", file, name, total, minIDs),
			Hint:    fmt.Sprintf("as root, add the line %s:%s to %s", name, freeRange(string(text)), file),
		}
	}
	return ranges, nil
}

// freeRange returns the first ID and the number of IDs after all those in the text of subuid(5), in its form.
func freeRange(text string) string {
	const first, count = 100000, 65536 // the defaults of login.defs(5)
	start := int64(first)
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, ":")
		for _, r := range idsOf(line, name, -1) {
			start = max(start, r.first+r.count)
		}
	}
	return fmt.Sprintf("%d:%d", start, count)
}

// userName returns the name of the user of this process, or its ID if it has none.
func userName() string {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// mapping returns the arguments of newuidmap(1) and newgidmap(1): the user itself is ID 0, its ranges follow without a gap.
func mapping(own int, ranges []idRange) []string {
	args := []string{"0", strconv.Itoa(own), "1"}
	next := int64(1)
	for _, r := range ranges {
		args = append(args, strconv.FormatInt(next, 10), strconv.FormatInt(r.first, 10), strconv.FormatInt(r.count, 10))
		next += r.count
	}
	return args
}
