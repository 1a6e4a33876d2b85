package spec

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// decoder fills structs from nodes. It keeps the node of every field by the
// field's address, so that a check refers to a position by a pointer to the
// field.
type decoder struct {
	problems Problems
	at       map[any]*node
	format   format
	subject  string // name of the top-level table in messages; empty means the pod
	// allowLoss makes warnings of the errors about fields that are refused.
	allowLoss bool
	// forCluster takes the fields that only a cluster uses as they are.
	forCluster bool
}

// entry stands for the address of a map value: map values are not addressable.
type entry struct {
	m   any // pointer to the map
	key string
}

// fieldSet maps the keys of a table to the indexes of the struct's fields.
type fieldSet map[string]int

func (s fieldSet) names() []string { return slices.Sorted(maps.Keys(s)) }

// fieldsOf returns the keys that the table of a struct type can have.
func fieldsOf(t reflect.Type) fieldSet {
	fields := fieldSet{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("podfile") == "-" {
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = i
		}
	}
	return fields
}

func (d *decoder) decode(n *node, v reflect.Value) {
	d.at[v.Addr().Interface()] = n
	if n.broken {
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *Seconds:
		if f, ok := d.number(n); ok {
			d.seconds(n, p, f)
		}
		return
	case *Quantity:
		d.quantity(n, p)
		return
	case *Port:
		d.port(n, p)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem())
	case reflect.Struct:
		d.table(n, v)
	case reflect.Slice:
		d.array(n, v)
	case reflect.Map:
		d.dict(n, v)
	default:
		d.scalar(n, v)
	}
}

func (d *decoder) table(n *node, v reflect.Value) {
	if n.kind != kindTable {
		d.mismatch(n, "a table")
		return
	}
	n.fields = fieldsOf(v.Type())
	for _, c := range n.items {
		if i, ok := n.fields[c.key]; ok {
			d.decode(c, v.Field(i))
			continue
		}
		d.unknownKey(n, c, v.Type())
	}
}

func (d *decoder) array(n *node, v reflect.Value) {
	elements := n.items
	switch {
	case n.kind == kindTable && n.header && v.Type().Elem().Kind() == reflect.Struct:
		d.fail(n, n.keyAt, "must be an array of tables, found table", "write [["+n.name()+"]] instead of ["+n.name()+"]")
		elements = []*node{n} // report the other problems of the table too
	case n.kind != kindArray:
		d.mismatch(n, arrayOf(v.Type().Elem()))
		return
	}
	if len(elements) == 0 {
		v.SetZero() // the array replaces a default
		return      // nil, so that a JSON round trip changes nothing
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, c := range elements {
		d.decode(c, v.Index(i))
	}
}

// name returns the dotted key of a table, as in its header.
func (n *node) name() string {
	var keys []string
	for ; n != nil; n = n.parent {
		if n.key != "" {
			keys = append(keys, printableKey(n.key))
		}
	}
	slices.Reverse(keys)
	return strings.Join(keys, ".")
}

func arrayOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "an array of tables"
	case reflect.String:
		return "an array of strings"
	default:
		return "an array of integers"
	}
}

func (d *decoder) dict(n *node, v reflect.Value) {
	if n.kind != kindTable {
		d.mismatch(n, "a table")
		if _, secret := reflect.TypeAssert[SecretData](v); secret && n.kind == kindArray {
			d.problems[len(d.problems)-1].Hint = "write the values: podstead get prints the keys of secrets only"
		}
		return
	}
	if len(n.items) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, c := range n.items {
		e := reflect.New(v.Type().Elem()).Elem()
		d.decode(c, e)
		d.at[entry{v.Addr().Interface(), c.key}] = c
		v.SetMapIndex(reflect.ValueOf(c.key), e)
	}
}

func (d *decoder) scalar(n *node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s, ok := n.value.(string)
		switch {
		case !ok || n.kind != kindString:
			d.mismatch(n, "a string")
		case strings.ContainsRune(s, 0):
			d.fail(n, n.at, "must not contain a NUL character", "")
		default:
			v.SetString(s)
		}
	case reflect.Bool:
		if b, ok := n.boolean(); ok {
			n.kind, n.value, n.text = kindBool, b, strconv.FormatBool(b)
			v.SetBool(b)
		} else {
			d.mismatch(n, "a boolean")
		}
	case reflect.Float64:
		if f, ok := d.number(n); ok {
			v.SetFloat(f)
		}
	default: // int32, int64
		i, ok := n.value.(int64)
		switch {
		case !ok:
			d.mismatch(n, "an integer")
		case v.OverflowInt(i):
			limit := int64(math.MaxInt64) >> (64 - v.Type().Bits())
			d.fail(n, n.at, inRange(-limit-1, limit), "")
		default:
			v.SetInt(i)
		}
	}
}

// boolean returns a boolean. The words of YAML 1.1, which Kubernetes reads, are booleans only where one is required: elsewhere they are
// text, which a person has meant.
func (n *node) boolean() (b, ok bool) {
	if b, ok = n.value.(bool); ok || !n.plain {
		return b, ok
	}
	switch strings.ToLower(fmt.Sprint(n.value)) {
	case "yes", "on":
		return true, true
	case "no", "off":
		return false, true
	}
	return false, false
}

func (d *decoder) number(n *node) (float64, bool) {
	switch x := n.value.(type) {
	case int64:
		return float64(x), true
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return x, true
		}
		d.fail(n, n.at, "must be a finite number", "")
	default:
		d.mismatch(n, "a number")
	}
	return 0, false
}

// inRange is the message for a number out of range, as in Kubernetes' validation.
func inRange(low, high int64) string {
	return fmt.Sprintf("must be between %d and %d, inclusive", low, high)
}

// maxSeconds is the maximum of Kubernetes fields in seconds (int32).
const maxSeconds = math.MaxInt32

func (d *decoder) seconds(n *node, s *Seconds, f float64) {
	switch {
	case f < 0:
		d.fail(n, n.at, notNegative, "")
	case f > maxSeconds:
		d.fail(n, n.at, "must be less than or equal to "+strconv.Itoa(maxSeconds), "")
	case f > 0 && Seconds(f).Duration() == 0:
		d.fail(n, n.at, "must be 0 or at least 1 nanosecond", "")
	default:
		*s = Seconds(f)
	}
}

// notNegative is Kubernetes' message for a negative number.
const notNegative = "must be greater than or equal to 0"

// maxQuantityText is the maximum length of a quantity. The library computes
// with all digits of an exponent.
const maxQuantityText = 32

func (d *decoder) quantity(n *node, q *Quantity) {
	var text string
	switch x := n.value.(type) {
	case string:
		text = x
	case int64, float64:
		text = strings.ReplaceAll(n.text, "_", "")
	default:
		d.mismatch(n, `a quantity such as "250m" or "64Mi"`)
		return
	}
	if len(text) > maxQuantityText || hugeExponent(text) {
		d.fail(n, n.at, "Invalid value: "+quote(text)+": out of range", "")
		return
	}
	parsed, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		d.fail(n, n.at, "Invalid value: "+quote(text)+": must be a quantity", quantityHint(n.key, text))
	case parsed.Sign() < 0:
		d.fail(n, n.at, notNegative, "")
	default:
		*q = parsed
		n.canonical = strconv.Quote(q.String())
	}
}

// otherUnits are quantities of bytes as other programs write them, such as 64MB, 64 MiB, and 64m and 1g of Docker.
var otherUnits = lazyregexp.New(`^(\d+(?:\.\d+)?) ?([kKmMgGtT])([iI]?)([bB]?)$`)

// quantityHint shows how a quantity is written: an amount of CPU, or one of bytes.
func quantityHint(key, text string) string {
	if key == "cpu" {
		return `write a number of CPUs, such as "250m" or 1.5`
	}
	m := otherUnits.FindStringSubmatch(text)
	if m == nil {
		return `write a number of bytes with a unit, such as "64Mi"`
	}
	unit := strings.ToUpper(m[2])
	switch decimal := m[3] == "" && m[4] != ""; {
	case !decimal:
		unit += "i"
	case unit == "K":
		unit = "k"
	}
	return "write " + strconv.Quote(m[1]+unit)
}

func hugeExponent(text string) bool {
	i := strings.LastIndexAny(text, "eE")
	if i < 0 {
		return false
	}
	exponent, err := strconv.Atoi(text[i+1:])
	return err == nil && (exponent > 18 || exponent < -18)
}

const badPort = "must be a port number between 1 and 65535, inclusive, or a port name"

func (d *decoder) port(n *node, p *Port) {
	switch x := n.value.(type) {
	case int64:
		if x < 1 || x > 65535 {
			d.fail(n, n.at, badPort, "")
			return
		}
		p.Number = int32(x)
	case string:
		if p.Name = x; x == "" {
			d.fail(n, n.at, badPort, "")
		}
	default:
		d.mismatch(n, "a port number or name")
	}
}
