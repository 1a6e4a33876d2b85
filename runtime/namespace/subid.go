package namespace

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/order"
)

// subIDOwner is the user whose subordinate IDs are for pods, like "kubelet" for the kubelet.
const subIDOwner = "podstead"

// idLimit is the end of the IDs that are used, since some programs use signed numbers.
const idLimit = 1 << 31

// idSpan is a half-open interval of IDs.
type idSpan struct{ first, end uint64 }

func (s idSpan) overlaps(o idSpan) bool { return s.first < o.end && o.first < s.end }

// idPool yields the first IDs of available ranges in ascending order: those within the subordinate IDs of the user
// podstead, or if there are none, those that are subordinate IDs of no user. Ranges start at multiples of [IDRangeSize]
// (KEP-127), so ranges of different pools are equal or disjoint.
func idPool(subUID, subGID string) (iter.Seq[uint32], error) {
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
	var reserved []idSpan
	if len(ours) == 0 {
		ours = []idSpan{{IDRangeSize, idLimit}}
		for _, list := range []map[string][]idSpan{users, groups} {
			for _, spans := range list {
				reserved = append(reserved, spans...)
			}
		}
	}
	return func(yield func(uint32) bool) {
		for _, s := range ours {
			first := max(IDRangeSize, (s.first+IDRangeSize-1)/IDRangeSize*IDRangeSize)
			for ; first+IDRangeSize <= min(s.end, idLimit); first += IDRangeSize {
				if !slices.ContainsFunc(reserved, idSpan{first, first + IDRangeSize}.overlaps) && !yield(uint32(first)) {
					return
				}
			}
		}
	}, nil
}

// readSubIDs returns the subordinate IDs in a file by owner. A missing file is empty. Invalid lines are ignored.
func readSubIDs(path string) (map[string][]idSpan, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string][]idSpan{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil && count > 0 {
			all[fields[0]] = append(all[fields[0]], idSpan{first, first + count})
		}
	}
	for _, spans := range all {
		order.Sort(spans, func(a, b idSpan) int { return int(a.first) - int(b.first) })
	}
	return all, nil
}
