package order

import (
	"cmp"
	"maps"
	"slices"
	"testing"
)

// TestSortIsStable compares lists of many lengths with what package slices returns.
func TestSortIsStable(t *testing.T) {
	type item struct{ key, place int }
	byKey := func(a, b item) int { return cmp.Compare(a.key, b.key) }
	for n := range 200 {
		list := make([]item, n)
		for i := range list {
			list[i] = item{key: i * 7919 % 13, place: i}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, byKey)
		if Sort(list, byKey); !slices.Equal(list, want) {
			t.Errorf("%d items: got %v, want %v", n, list, want)
		}
	}
}

func TestSorted(t *testing.T) {
	if got := Sorted(maps.Values(map[string]int{"a": 2, "b": 3, "c": 1}), cmp.Compare[int]); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got %v", got)
	}
	if got := Sorted(maps.Values(map[string]int{}), cmp.Compare[int]); got != nil {
		t.Errorf("got %v of an empty sequence", got)
	}
}
