package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
)

// hashVersion changes with the canonical form, so that hashes of different
// versions are never equal.
const hashVersion = "v1:"

// hash returns the digest of the canonical form of a table of the file.
func hash(n *node) string {
	var b strings.Builder
	canonical(&b, n)
	sum := sha256.Sum256([]byte(b.String()))
	return hashVersion + hex.EncodeToString(sum[:16])
}

// canonical writes a node with sorted keys. The order of an array is
// significant; an empty array is equal to an unset one.
func canonical(b *strings.Builder, n *node) {
	switch {
	case n.canonical != "":
		b.WriteString(n.canonical)
	case n.kind == kindTable:
		canonicalTable(b, n)
	case n.kind == kindArray:
		b.WriteByte('[')
		for i, c := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			canonical(b, c)
		}
		b.WriteByte(']')
	default:
		b.WriteString(canonicalScalar(n.value))
	}
}

func canonicalTable(b *strings.Builder, n *node) {
	children := slices.Clone(n.items)
	slices.SortFunc(children, func(x, y *node) int { return strings.Compare(x.key, y.key) })
	b.WriteByte('{')
	separator := ""
	for _, c := range children {
		if c.ignored || c.kind == kindArray && len(c.items) == 0 {
			continue
		}
		b.WriteString(separator + strconv.Quote(c.key) + ":")
		canonical(b, c)
		separator = ","
	}
	b.WriteByte('}')
}

func canonicalScalar(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10) // 1.0 is 1
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	default:
		return "null" // dates: no field accepts them
	}
}
