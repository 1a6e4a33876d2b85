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

// owner is the user whose subordinate ids are for pods, as "kubelet" is for the kubelet's.
const owner = "podstead"

// limit is the end of the ids that are used: some programs take an id for a signed number.
const limit = 1 << 31

// span is ids from a first one up to, not including, an end.
type span struct{ first, end uint64 }

func (s span) overlaps(o span) bool { return s.first < o.end && o.first < s.end }

// pool yields the first ids of the ranges that pods can have, in ascending order: those within the subordinate ids of the user
// podstead, or, where there are none, those that are nobody's subordinate ids. Ranges lie on multiples of [Size] (KEP-127), so those
// of two pools are the same or do not overlap.
func pool(subUID, subGID string) (iter.Seq[uint32], error) {
	users, err := readSubIDs(subUID)
	if err != nil {
		return nil, err
	}
	groups, err := readSubIDs(subGID)
	if err != nil {
		return nil, err
	}
	ours := users[owner]
	if !slices.Equal(ours, groups[owner]) {
		return nil, fmt.Errorf("the subordinate ids of user %s in %s and %s are not the same", owner, subUID, subGID)
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

// readSubIDs reads a file of subordinate ids by their owners. One that is not there has none; a line that means nothing gives
// nobody any.
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
