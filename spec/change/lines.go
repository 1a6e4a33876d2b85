package change

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// diffContext is the number of equal lines before and after those that differ, as in diff -u.
	diffContext = 3
	// maxDiffLines is the number of lines between the first and the last one that differ up to which differences are shown: their cost is
	// its square.
	maxDiffLines = 1000
	// maxDiff is the maximum size of the differences of a value, in bytes.
	maxDiff = 16 << 10
)

// lineDiff returns the lines in which two lists of strings, or two texts, differ, as diff -u: each line begins with " ", "-" or "+", and a
// line "..." stands for equal ones that are left out. It is empty for other values, and if the lines are too long.
func lineDiff(a, b reflect.Value) string {
	x, y := linesOf(a), linesOf(b)
	if min(len(x), len(y)) < 1 || max(len(x), len(y)) < 2 || slices.Equal(x, y) {
		return ""
	}
	head := 0
	for head < min(len(x), len(y)) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < min(len(x), len(y))-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	if max(len(x), len(y))-head-tail > maxDiffLines {
		return ""
	}
	list := append(unchanged(x[:head]), edits(x[head:len(x)-tail], y[head:len(y)-tail])...)
	text := strings.Join(withContext(append(list, unchanged(x[len(x)-tail:])...)), "\n")
	if len(text) > maxDiff {
		return ""
	}
	return text
}

// linesOf returns the elements of a list of strings, or the lines of a text; nil: the value is neither.
func linesOf(v reflect.Value) []string {
	if !v.IsValid() || v.Type() == reflect.TypeFor[string]() && !strings.Contains(v.String(), "\n") {
		return nil
	}
	var elements []string
	switch {
	case v.Type() == reflect.TypeFor[string]():
		elements = []string{v.String()}
	case v.Type() == reflect.TypeFor[[]string]():
		elements, _ = reflect.TypeAssert[[]string](v)
	default:
		return nil
	}
	var lines []string
	for _, e := range elements {
		lines = append(lines, strings.Split(strings.TrimSuffix(e, "\n"), "\n")...)
	}
	for i, line := range lines {
		lines[i] = clip(line)
	}
	return lines
}

func unchanged(lines []string) []string {
	list := make([]string, len(lines))
	for i, line := range lines {
		list[i] = " " + line
	}
	return list
}

// edits returns the lines of two texts in order, those of a longest common subsequence with " ", the others with "-" or "+".
func edits(x, y []string) []string {
	// common[i][j] is the length of the longest common subsequence of x[i:] and y[j:].
	common := make([][]int, len(x)+1)
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i, v := range slices.Backward(x) {
		for j := len(y) - 1; j >= 0; j-- {
			if v == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var list []string
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		switch {
		case x[i] == y[j]:
			list = append(list, " "+x[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			list = append(list, "-"+x[i])
			i++
		default:
			list = append(list, "+"+y[j])
			j++
		}
	}
	for ; i < len(x); i++ {
		list = append(list, "-"+x[i])
	}
	for ; j < len(y); j++ {
		list = append(list, "+"+y[j])
	}
	return list
}

// withContext leaves out lines that are equal and far from those that differ.
func withContext(list []string) []string {
	near := make([]bool, len(list))
	for i := range list {
		if list[i][0] == ' ' {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(list)-1, i+diffContext); k++ {
			near[k] = true
		}
	}
	var out []string
	for i, line := range list {
		switch {
		case near[i]:
			out = append(out, line)
		case i == 0 || near[i-1]:
			out = append(out, "...")
		}
	}
	return out
}

// clip shortens a text between two characters.
func clip(text string) string {
	if len(text) <= maxValue {
		return text
	}
	cut := maxValue
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
