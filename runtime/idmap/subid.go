package idmap

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
)

// subIDOwner is the user whose subordinate IDs are for pods, like "kubelet" for the kubelet.
const subIDOwner = "podstead"

// limit is the end of the IDs that are used, since some programs use signed numbers.
const limit = 1 << 31

// span is a half-open interval of IDs.
type span struct{ first, end uint64 }

func (s span) overlaps(o span) bool { return s.first < o.end && o.first < s.end }

// pool yields the first IDs of available ranges in ascending order: those within the subordinate IDs of the user
// podstead, or if there are none, those that are subordinate IDs of no user. Ranges start at multiples of [Size]
// (KEP-127), so ranges of different pools are equal or disjoint.
func pool(subUID, subGID string) (iter.Seq[uint32], error) {
	users, err := readSubIDs(subUID)
	if err != nil {
		return nil, err
	}
	groups, err := readSubIDs(subGID)
	if err != nil {
		return nil, err
	}
	ours := users[subIDOwner]
	if !slices.Equal(ours, groups[subIDOwner]) {
		return nil, fmt.Errorf("subordinate IDs of user %s must be equal in %s and %s", subIDOwner, subUID, subGID)
	}
	var reserved []span
	if len(ours) == 0 {
		ours = []span{{Size, limit}}
		for _, list := range []map[string][]span{users, groups} {
			for _, spans := range list {
				reserved = append(reserved, spans...)
			}
		}
	}
	return func(yield func(uint32) bool) {
		for _, s := range ours {
			for first := max(Size, (s.first+Size-1)/Size*Size); first+Size <= min(s.end, limit); first += Size {
				if !slices.ContainsFunc(reserved, span{first, first + Size}.overlaps) && !yield(uint32(first)) {
					return
				}
			}
		}
	}, nil
}

// readSubIDs returns the subordinate IDs in a file by owner. A missing file is empty. Invalid lines are ignored.
func readSubIDs(path string) (map[string][]span, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string][]span{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil && count > 0 {
			all[fields[0]] = append(all[fields[0]], span{first, first + count})
		}
	}
	for _, spans := range all {
		slices.SortFunc(spans, func(a, b span) int { return int(a.first) - int(b.first) })
	}
	return all, nil
}
