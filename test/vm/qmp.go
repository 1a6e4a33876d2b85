package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

// commandTimeout is for a command of QEMU, which waits for nothing in the virtual machine.
const commandTimeout = time.Minute

// qmpSocket is a socket in the directory of the virtual machine.
const qmpSocket = "qmp"

// Arguments are those of a command of QEMU.
type Arguments map[string]any

// Execute executes a command of QEMU's machine protocol, such as device_add. The error is QEMU's, or that it does not answer within
// commandTimeout. The result is discarded.
func (m *Machine) Execute(ctx context.Context, command string, arguments Arguments) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(m.dir, qmpSocket))
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	encoder, decoder := json.NewEncoder(conn), json.NewDecoder(conn)
	var greeting json.RawMessage
	if err := decoder.Decode(&greeting); err != nil {
		return fmt.Errorf("%s: %w", command, errors.Join(err, ctx.Err()))
	}
	for _, request := range []request{{"qmp_capabilities", nil}, {command, arguments}} {
		err := encoder.Encode(request)
		if err == nil {
			err = answer(decoder)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", request.Execute, errors.Join(err, ctx.Err()))
		}
	}
	return nil
}

type request struct {
	Execute   string    `json:"execute"`
	Arguments Arguments `json:"arguments,omitempty"`
}

// answer reads the response to a request. Events come between them.
func answer(decoder *json.Decoder) error {
	for {
		var response struct {
			Event json.RawMessage
			Error *struct{ Class, Desc string }
		}
		if err := decoder.Decode(&response); err != nil {
			return err
		}
		switch {
		case response.Error != nil:
			return errors.New(response.Error.Desc)
		case response.Event == nil:
			return nil
		}
	}
}
