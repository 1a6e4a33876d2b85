package spec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

func problemAt(n *node, message, hint string) Problem {
	return Problem{Line: n.keyAt.line, Column: n.keyAt.column, Path: n.path(), Message: message, Hint: hint}
}

func warnAt(n *node, message string) Problem {
	p := problemAt(n, message, "")
	p.Warning = true
	return p
}

// fail reports a problem of a value and suppresses later problems of the same
// value.
func (d *decoder) fail(n *node, at position, message, hint string) {
	n.failed = true
	d.problems = append(d.problems, Problem{Line: at.line, Column: at.column, Path: n.path(), Message: message, Hint: hint})
}

func (d *decoder) mismatch(n *node, want string) {
	d.fail(n, n.at, fmt.Sprintf("must be %s, found %s", want, n.describe()), d.rewriteHint(n, want))
}

// rewriteHint shows the value in the required form, if there is an obvious one.
func (d *decoder) rewriteHint(n *node, want string) string {
	s, isString := n.value.(string)
	var value string
	switch {
	case want == "a table" && n.key == "schedule" && isString && len(s) <= 64:
		return "write " + d.format.assign("schedule", d.format.table([]pair{{"cron", s}}))
	case want == "a table":
		if hint := longHint(d.format, n); hint != "" {
			return hint
		}
		return composeItemHint(d.format, n)
	case want == "an array of tables" && n.kind == kindTable:
		return longListHint(d.format, n)
	case n.isConfidential():
		if want == "a string" && n.text != "" {
			return "put it in quotes"
		}
		return ""
	case want == "a string" && n.text != "" && len(n.text) <= 64:
		value = strconv.Quote(n.text)
	case want == "an array of strings" && isString && len(s) <= 64:
		value = "[" + strings.Join(words(s), ", ") + "]"
	case (want == "an integer" || want == "a number") && isString && isNumber(s), want == "a boolean" && (s == "true" || s == "false"):
		return "write " + s + " without quotes"
	default:
		return ""
	}
	label := n.key
	if n.label != "" {
		label = n.label
	}
	if label == "" {
		return "write " + value
	}
	return "write " + d.format.assign(label, value)
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && len(s) < 20
}

// words splits a command at spaces into quoted words. It does not split a
// command with quotes or shell metacharacters.
func words(s string) []string {
	fields := strings.Fields(s)
	if len(fields) == 0 || strings.ContainsAny(s, "\"'`\\$|&;<>*?") {
		fields = []string{s}
	}
	for i, f := range fields {
		fields[i] = strconv.Quote(f)
	}
	return fields
}

// withoutNumber removes the number or the date from a message of the decoder,
// which does not know the field. It may be a password without quotes.
func withoutNumber(message string) string {
	if strings.HasPrefix(message, "invalid datetime") {
		return "invalid date or time"
	}
	return leadingNumber.ReplaceAllString(message, "the number$1")
}

var leadingNumber = lazyregexp.New(`^\S+( is out of )`)
