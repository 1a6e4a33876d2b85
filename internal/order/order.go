// Package order sorts slices by a function, and finds duplicates. The compiler repeats the functions of package slices for each type of
// elements, which makes the program 20 kB larger for each. All types share those of package sort, which are slower.
package order

import (
	"iter"
	"slices"
	"sort"
)

// Sort sorts a list like [slices.SortStableFunc].
func Sort[E any](list []E, compare func(a, b E) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Sorted returns the values of a sequence in a new list, like [slices.SortedStableFunc]; nil if there are none.
func Sorted[E any](values iter.Seq[E], compare func(a, b E) int) []E {
	list := slices.Collect(values)
	Sort(list, compare)
	return list
}

// Unique returns a list without duplicates, in the order of first occurrence; nil if there is nothing in it.
func Unique(list []string) []string {
	var found []string
	for _, s := range list {
		if !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}
