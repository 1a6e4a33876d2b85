package spec

import (
	"reflect"
	"strings"
	"testing"
)

// TestSameHandler: probes with different handlers check different things, whatever the handler. Times and thresholds do not count.
func TestSameHandler(t *testing.T) {
	fields := reflect.TypeFor[Probe]()
	for i := range fields.NumField() {
		var changed Probe
		field := reflect.ValueOf(&changed).Elem().Field(i)
		switch field.Kind() {
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		default:
			field.Set(reflect.ValueOf(1).Convert(field.Type()))
		}
		name := fields.Field(i).Name
		isTime := strings.HasSuffix(name, "Seconds") || strings.HasSuffix(name, "Threshold")
		if got := changed.SameHandler(&Probe{}); got != isTime {
			t.Errorf("%s: same handler %t, want %t", name, got, isTime)
		}
	}
}
