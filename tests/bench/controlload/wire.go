// SPDX-License-Identifier: Apache-2.0
package main

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// rawCodec passes messages through: those of control.proto are written and read by hand below, so that no generated
// code is needed. That is less work for grpc-go than its usual codec would be.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (rawCodec) Name() string { return "proto" }

func bytesField(out []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), value)
}

func textField(out []byte, number protowire.Number, value string) []byte {
	return bytesField(out, number, []byte(value))
}

func numberField(out []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), value)
}

func helloMessage(node string) []byte {
	return bytesField(nil, 1, textField(textField(nil, 1, node), 2, "default"))
}

func ackMessage(version uint64) []byte { return bytesField(nil, 2, numberField(nil, 1, version)) }

// fieldOf returns the first field of this number.
func fieldOf(message []byte, wanted protowire.Number) (value []byte, number uint64) {
	for len(message) > 0 {
		field, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil, 0
		}
		message = message[size:]
		switch kind {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(message)
		default:
			return nil, 0
		}
		if size < 0 || field == wanted {
			return value, number
		}
		message = message[size:]
	}
	return nil, 0
}

// versionOf reads the version of an OperatorMessage: a snapshot or a delta, whose first field it is.
func versionOf(message []byte) uint64 {
	for _, kind := range []protowire.Number{1, 2} {
		if body, _ := fieldOf(message, kind); body != nil {
			_, version := fieldOf(body, 1)
			return version
		}
	}
	return 0
}

type pod struct {
	uid, name, id string
	labels        map[string]string
}

func (p *pod) encode() []byte {
	container := textField(textField(textField(nil, 1, "app"), 2, p.id), 3, "main")
	for key, value := range p.labels {
		container = bytesField(container, 4, textField(textField(nil, 1, key), 2, value))
	}
	out := textField(textField(textField(textField(nil, 1, p.uid), 2, "shop"), 3, p.name), 4, "10.1.2.3")
	return bytesField(out, 5, container)
}

func configMessage() []byte {
	return bytesField(numberField(nil, 1, 19), 2, textField(textField(nil, 1, "main"), 2, "http://store:4040"))
}

func snapshotMessage(version uint64, pods []*pod) []byte {
	body := bytesField(numberField(nil, 1, version), 2, configMessage())
	for _, p := range pods {
		body = bytesField(body, 3, p.encode())
	}
	return bytesField(nil, 1, body)
}

func deltaMessage(version uint64, changed *pod) []byte {
	return bytesField(nil, 2, bytesField(numberField(nil, 1, version), 3, changed.encode()))
}
