package show

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/internal/order"
)

// Sort sorts a list by the first value of an expression in each element. As in kubectl, strings that are quantities have the order of their
// values, and elements without the field come first. It is an error if no element has the field.
func Sort[T any](list []T, by Path) error {
	type keyed struct {
		key  any // nil: the element has no such field
		item T
	}
	var items []keyed
	found := len(list) == 0
	for _, item := range list {
		object, err := Object(item)
		if err != nil {
			return err
		}
		values, err := by.Values(object)
		if err != nil {
			return err
		}
		k := keyed{item: item}
		if len(values) > 0 {
			k.key, found = values[0], true
		}
		items = append(items, k)
	}
	if !found {
		return fmt.Errorf("no pod has the field %s", by)
	}
	var failed error
	order.Sort(items, func(a, b keyed) int {
		order, err := compare(a.key, b.key)
		if err != nil {
			failed = fmt.Errorf("sort by %s: %w", by, err)
		}
		return order
	})
	for i := range items {
		list[i] = items[i].item
	}
	return failed
}

// compare returns the order of two values of an [Object].
func compare(a, b any) (int, error) {
	if a == nil || b == nil {
		return presence(a) - presence(b), nil
	}
	if a, ok := a.(string); ok {
		if b, ok := b.(string); ok {
			return compareTexts(a, b), nil
		}
	}
	x, isNumber := number(a)
	y, areNumbers := number(b)
	if !isNumber || !areNumbers {
		return 0, errNoOrder
	}
	return cmp.Compare(x, y), nil
}

var errNoOrder = errors.New("values must be either strings or numbers")

// presence is 0 for a missing value, otherwise 1.
func presence(v any) int {
	if v == nil {
		return 0
	}
	return 1
}

func compareTexts(a, b string) int {
	x, errA := resource.ParseQuantity(a)
	y, errB := resource.ParseQuantity(b)
	if errA == nil && errB == nil {
		return x.Cmp(y)
	}
	return strings.Compare(a, b)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
