package spec

import (
	"strings"
)

// nearest returns the known name that is most similar to a misspelled one, or "".
func nearest(name string, known []string) string {
	const longest = 64 // bounds the cost; no known name is longer
	if name == "" || len(name) > longest {
		return ""
	}
	lower := strings.ToLower(name)
	best, distance := "", len(name)/3+2 // results must be below this distance
	for _, k := range known {
		if d := editDistance(lower, strings.ToLower(k), distance); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// didYouMean returns a hint with the nearest known name, or "".
func didYouMean(name string, known []string) string {
	if k := nearest(name, known); k != "" {
		return "did you mean " + quote(k) + "?"
	}
	return ""
}

// editDistance is the number of inserted, deleted, replaced and transposed
// bytes, at most limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			current[j+1] = min(previous[j+1]+1, current[j]+1, previous[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				current[j+1] = min(current[j+1], before[j-1]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return min(previous[len(b)], limit)
}

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// quotedList returns the values in quotes, with commas between them.
func quotedList(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, v := range values {
		quoted = append(quoted, quote(v))
	}
	return strings.Join(quoted, ", ")
}

// alternatives returns the names as in "a, b or c".
func alternatives(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
