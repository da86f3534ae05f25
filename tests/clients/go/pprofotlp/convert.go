// SPDX-License-Identifier: Apache-2.0

// Package pprofotlp turns profiles of google/pprof into those of the OpenTelemetry collector, and back: a profile of
// OTLP for each sample type.
package pprofotlp

import (
	"fmt"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

type tables struct {
	dictionary pprofile.ProfilesDictionary
	strings    map[string]int32
	mappings   map[*profile.Mapping]int32
	functions  map[*profile.Function]int32
	locations  map[*profile.Location]int32
}

// Add appends the profile's sample types to a resource, with `now` as their time.
func Add(to pprofile.Profiles, resource map[string]string, from *profile.Profile, now int64) {
	d := to.Dictionary()
	// Element 0 of each table is the empty one.
	if d.StringTable().Len() == 0 {
		d.StringTable().Append("")
		d.MappingTable().AppendEmpty()
		d.LocationTable().AppendEmpty()
		d.FunctionTable().AppendEmpty()
		d.LinkTable().AppendEmpty()
		d.AttributeTable().AppendEmpty()
		d.StackTable().AppendEmpty()
	}
	t := tables{d, map[string]int32{}, map[*profile.Mapping]int32{}, map[*profile.Function]int32{},
		map[*profile.Location]int32{}}
	for i, text := range d.StringTable().All() {
		t.strings[text] = int32(i)
	}
	group := to.ResourceProfiles().AppendEmpty()
	for key, value := range resource {
		group.Resource().Attributes().PutStr(key, value)
	}
	scope := group.ScopeProfiles().AppendEmpty()
	stacks := make([]int32, len(from.Sample))
	attributes := make([][]int32, len(from.Sample))
	for i, sample := range from.Sample {
		stack := d.StackTable().AppendEmpty()
		for _, location := range sample.Location {
			stack.LocationIndices().Append(t.location(location))
		}
		stacks[i] = int32(d.StackTable().Len() - 1)
		for key, values := range sample.Label {
			attributes[i] = append(attributes[i], t.attribute(key, pcommon.NewValueStr(values[0])))
		}
		for key, values := range sample.NumLabel {
			attributes[i] = append(attributes[i], t.attribute(key, pcommon.NewValueInt(values[0])))
		}
	}
	for i, sampleType := range from.SampleType {
		out := scope.Profiles().AppendEmpty()
		out.SetTime(pcommon.Timestamp(now))
		out.SetDurationNano(uint64(from.DurationNanos))
		out.SampleType().SetTypeStrindex(t.text(sampleType.Type))
		out.SampleType().SetUnitStrindex(t.text(sampleType.Unit))
		if from.PeriodType != nil {
			out.PeriodType().SetTypeStrindex(t.text(from.PeriodType.Type))
			out.PeriodType().SetUnitStrindex(t.text(from.PeriodType.Unit))
		}
		out.SetPeriod(from.Period)
		for key, value := range map[string]string{
			"pprof.profile.drop_frames": from.DropFrames, "pprof.profile.keep_frames": from.KeepFrames} {
			out.AttributeIndices().Append(t.attribute(key, pcommon.NewValueStr(value)))
		}
		for j, sample := range from.Sample {
			to := out.Samples().AppendEmpty()
			to.SetStackIndex(stacks[j])
			to.Values().Append(sample.Value[i])
			to.AttributeIndices().Append(attributes[j]...)
		}
	}
}

func (t tables) text(text string) int32 {
	index, found := t.strings[text]
	if !found {
		index = int32(t.dictionary.StringTable().Len())
		t.dictionary.StringTable().Append(text)
		t.strings[text] = index
	}
	return index
}

func (t tables) attribute(key string, value pcommon.Value) int32 {
	attribute := t.dictionary.AttributeTable().AppendEmpty()
	attribute.SetKeyStrindex(t.text(key))
	value.CopyTo(attribute.Value())
	return int32(t.dictionary.AttributeTable().Len() - 1)
}

func (t tables) location(from *profile.Location) int32 {
	if index, found := t.locations[from]; found {
		return index
	}
	index := int32(t.dictionary.LocationTable().Len())
	t.locations[from] = index
	out := t.dictionary.LocationTable().AppendEmpty()
	out.SetAddress(from.Address)
	if from.Mapping != nil {
		out.SetMappingIndex(t.mapping(from.Mapping))
	}
	for _, line := range from.Line {
		to := out.Lines().AppendEmpty()
		to.SetFunctionIndex(t.function(line.Function))
		to.SetLine(line.Line)
	}
	return index
}

func (t tables) mapping(from *profile.Mapping) int32 {
	if index, found := t.mappings[from]; found {
		return index
	}
	index := int32(t.dictionary.MappingTable().Len())
	t.mappings[from] = index
	out := t.dictionary.MappingTable().AppendEmpty()
	out.SetMemoryStart(from.Start)
	out.SetMemoryLimit(from.Limit)
	out.SetFileOffset(from.Offset)
	out.SetFilenameStrindex(t.text(from.File))
	out.AttributeIndices().Append(
		t.attribute("process.executable.build_id.gnu", pcommon.NewValueStr(from.BuildID)))
	return index
}

func (t tables) function(from *profile.Function) int32 {
	if index, found := t.functions[from]; found {
		return index
	}
	index := int32(t.dictionary.FunctionTable().Len())
	t.functions[from] = index
	out := t.dictionary.FunctionTable().AppendEmpty()
	out.SetNameStrindex(t.text(from.Name))
	out.SetSystemNameStrindex(t.text(from.SystemName))
	out.SetFilenameStrindex(t.text(from.Filename))
	out.SetStartLine(from.StartLine)
	return index
}

// Received is a profile of OTLP as pprof, with the attributes of its resource and the name of its scope.
type Received struct {
	Resource map[string]any
	Scope    string
	Profile  *profile.Profile
}

// All gives every profile, each with one sample type.
func All(from pprofile.Profiles) ([]Received, error) {
	var all []Received
	for _, group := range from.ResourceProfiles().All() {
		for _, scope := range group.ScopeProfiles().All() {
			for _, one := range scope.Profiles().All() {
				out, err := toPprof(from.Dictionary(), one)
				if err != nil {
					return nil, err
				}
				all = append(all, Received{group.Resource().Attributes().AsRaw(), scope.Scope().Name(), out})
			}
		}
	}
	return all, nil
}

func toPprof(d pprofile.ProfilesDictionary, from pprofile.Profile) (*profile.Profile, error) {
	text := func(index int32) string { return d.StringTable().At(int(index)) }
	valueType := func(t pprofile.ValueType) *profile.ValueType {
		return &profile.ValueType{Type: text(t.TypeStrindex()), Unit: text(t.UnitStrindex())}
	}
	out := &profile.Profile{
		SampleType:    []*profile.ValueType{valueType(from.SampleType())},
		PeriodType:    valueType(from.PeriodType()),
		Period:        from.Period(),
		TimeNanos:     int64(from.Time()),
		DurationNanos: int64(from.DurationNano()),
	}
	for _, index := range from.AttributeIndices().All() {
		attribute := d.AttributeTable().At(int(index))
		switch text(attribute.KeyStrindex()) {
		case "pprof.profile.drop_frames":
			out.DropFrames = attribute.Value().Str()
		case "pprof.profile.keep_frames":
			out.KeepFrames = attribute.Value().Str()
		}
	}
	for i, function := range d.FunctionTable().All() {
		out.Function = append(out.Function, &profile.Function{ID: uint64(i + 1),
			Name: text(function.NameStrindex()), SystemName: text(function.SystemNameStrindex()),
			Filename: text(function.FilenameStrindex()), StartLine: function.StartLine()})
	}
	for i, mapping := range d.MappingTable().All() {
		out.Mapping = append(out.Mapping, &profile.Mapping{ID: uint64(i + 1), Start: mapping.MemoryStart(),
			Limit: mapping.MemoryLimit(), Offset: mapping.FileOffset(), File: text(mapping.FilenameStrindex())})
	}
	for i, location := range d.LocationTable().All() {
		to := &profile.Location{ID: uint64(i + 1), Address: location.Address()}
		if location.MappingIndex() != 0 {
			to.Mapping = out.Mapping[location.MappingIndex()]
		}
		for _, line := range location.Lines().All() {
			to.Line = append(to.Line,
				profile.Line{Function: out.Function[line.FunctionIndex()], Line: line.Line()})
		}
		out.Location = append(out.Location, to)
	}
	for _, sample := range from.Samples().All() {
		to := &profile.Sample{Value: sample.Values().AsRaw(), Label: map[string][]string{},
			NumLabel: map[string][]int64{}}
		for _, location := range d.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
			to.Location = append(to.Location, out.Location[location])
		}
		for _, index := range sample.AttributeIndices().All() {
			attribute := d.AttributeTable().At(int(index))
			key := text(attribute.KeyStrindex())
			switch value := attribute.Value(); value.Type() {
			case pcommon.ValueTypeStr:
				to.Label[key] = append(to.Label[key], value.Str())
			case pcommon.ValueTypeInt:
				to.NumLabel[key] = append(to.NumLabel[key], value.Int())
			default:
				return nil, fmt.Errorf("attribute %s is a %s", key, value.Type())
			}
		}
		out.Sample = append(out.Sample, to)
	}
	return out, out.CheckValid()
}
