package server

import (
	"encoding/json"
	"hash/fnv"
	"reflect"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestConversions requires that a converted value has the same JSON as the internal one: no field is lost. Fields of the supervisor that
// the API does not have are listed here.
func TestConversions(t *testing.T) {
	var status lifecycle.Status
	set(reflect.ValueOf(&status).Elem(), "status", 0)
	same(t, status, statusOf(&status), "hostIP", "hostIPs")

	var ev event.Event
	set(reflect.ValueOf(&ev).Elem(), "event", 0)
	ev.Boot, ev.Mono = "", 0 // for the correction of the time
	same(t, ev, eventOf(&ev))

	var policy admission.Policy
	set(reflect.ValueOf(&policy).Elem(), "policy", 0)
	policy.SystemReserved = spec.ResourceList{"cpu": {}}
	same(t, policy, PolicyOf(&policy))

	var refusal lifecycle.Refusal
	set(reflect.ValueOf(&refusal).Elem(), "refusal", 0)
	same(t, refusal, refusalOf(&refusal))
	if text := refusalOf(&refusal); text.Error() != refusal.Error() {
		t.Errorf("the refusal is %q, want %q", text.Error(), refusal.Error())
	}

	var volume supervisor.Volume
	set(reflect.ValueOf(&volume).Elem(), "volume", 0)
	same(t, volume, volumeOf(&volume))

	pulls := map[string]lifecycle.Progress{}
	set(reflect.ValueOf(&pulls).Elem(), "pulls", 0)
	same(t, pulls, pullingOf(pulls))

	if list := convert(nil, podIPOf); list != nil {
		t.Error("nil has become a list")
	}
	if list := convert([]lifecycle.PodIP{}, podIPOf); list == nil || len(list) != 0 {
		t.Error("an empty list must stay one")
	}
}

// same requires that two values have the same JSON, without fields that only the second one has.
func same(t *testing.T, internal, converted any, without ...string) {
	t.Helper()
	decode := func(v any) (fields map[string]any) {
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &fields)
		}
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		return fields
	}
	want, got := decode(internal), decode(converted)
	for _, name := range without {
		delete(got, name)
	}
	if len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%T is %v, want as %T %v", converted, got, internal, want)
	}
}

// set gives every exported field a value that depends on its path. Causes are nested once.
func set(v reflect.Value, path string, depth int) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	n := int64(h.Sum32()%1_000_000) + 1
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(n, 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Pointer:
		if depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			set(v.Elem(), path, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(v.Index(0), path+"[]", depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		set(value, path+"{}", depth+1)
		v.SetMapIndex(reflect.ValueOf(path).Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				set(v.Field(i), path+"."+field.Name, depth+1)
			}
		}
	}
}

// TestWords requires that the words of the supervisor are those of the API. To rename one in the supervisor, convert it.
func TestWords(t *testing.T) {
	for _, pair := range [][2]string{
		{string(lifecycle.PhasePending), string(api.PhasePending)},
		{string(lifecycle.PhaseRunning), string(api.PhaseRunning)},
		{string(lifecycle.PhaseSucceeded), string(api.PhaseSucceeded)},
		{string(lifecycle.PhaseFailed), string(api.PhaseFailed)},
		{string(lifecycle.PhaseUnknown), string(api.PhaseUnknown)},
		{string(lifecycle.PodReady), string(api.PodReady)},
		{string(lifecycle.PodInitialized), string(api.PodInitialized)},
		{string(lifecycle.ContainersReady), string(api.ContainersReady)},
		{string(lifecycle.PodWaitedFor), string(api.PodWaitedFor)},
		{string(supervisor.StateNotDurable), string(api.StateNotDurable)},
		{string(supervisor.RemovalFailed), string(api.RemovalFailed)},
		{string(supervisor.MonitorUnresponsive), string(api.MonitorUnresponsive)},
		{string(supervisor.VolumesNotUpdated), string(api.VolumesNotUpdated)},
		{string(lifecycle.ReasonWaitingFor), string(api.ReasonWaitingFor)},
		{string(lifecycle.ReasonPodInitializing), string(api.ReasonPodInitializing)},
		{string(lifecycle.ReasonCompleted), string(api.ReasonCompleted)},
		{string(lifecycle.ReasonQuarantined), string(api.ReasonQuarantined)},
		{string(lifecycle.ReasonUnexpectedAdmissionError), "UnexpectedAdmissionError"},
		{string(lifecycle.ProbeStartup), string(api.ProbeStartup)},
		{string(lifecycle.ProbeReadiness), string(api.ProbeReadiness)},
		{string(lifecycle.ProbeLiveness), string(api.ProbeLiveness)},
		{string(lifecycle.ProbeSuccess), string(api.ProbeSuccess)},
		{string(lifecycle.ProbeWarning), string(api.ProbeWarning)},
		{string(lifecycle.ProbeFailure), string(api.ProbeFailure)},
		{string(lifecycle.ProbeError), string(api.ProbeError)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%q is %q in the API", pair[0], pair[1])
		}
	}
}
