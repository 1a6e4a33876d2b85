package shim

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	runc "github.com/containerd/go-runc"
)

// serviceExits returns the channel from which containerd's task service reads exits. The service subscribes to containerd's reaper,
// whose only way to send is its own loop over wait4, so the channel is read from the reaper's unexported list of subscribers.
func serviceExits(m *reaper.Monitor) (chan<- runc.Exit, error) {
	m.Lock()
	defer m.Unlock()
	field := reflect.ValueOf(m).Elem().FieldByName("subscribers")
	if field.Kind() != reflect.Map || field.Len() != 1 {
		return nil, fmt.Errorf("subscribers of containerd's reaper: got %v, want one", field)
	}
	subscribers := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
	c, ok := reflect.TypeAssert[chan runc.Exit](subscribers.MapKeys()[0])
	if !ok {
		return nil, fmt.Errorf("subscribers of containerd's reaper: unexpected type %v", field.Type())
	}
	return c, nil
}
