package machine;

import ("fmt"; "io");

/*
   A tiny virtual machine. Every statement here ends with a semicolon,
   which nobody writes **but** everybody may write. /
*/

type op byte;

const (push op = iota; add; sub; mul; jump; jumpIf; dup; print; halt);

type instruction struct { code op; arg int };

type machine struct {
	program []instruction;
	stack   []int;
	pc      int;
	out     io.Writer;
};

func (m *machine) pop() int {
	top := m.stack[len(m.stack)-1];
	m.stack = m.stack[:len(m.stack)-1];
	return top;
};

func (m *machine) push(x int) { m.stack = append(m.stack, x); };

func (m *machine) run(limit int) (steps int, err error) {
	again:;
	if steps++; steps > limit {
		return steps, fmt.Errorf("no end after %d steps", limit);
	};
	next := m.program[m.pc];
	m.pc++;
	switch next.code {
	case push:
		m.push(next.arg);
	case add:
		m.push(m.pop() + m.pop());
	case sub:
		b := m.pop(); a := m.pop(); m.push(a - b);
	case mul:
		m.push(m.pop() * m.pop());
	case dup:
		x := m.pop();
		m.push(x);
		m.push(x);
	case jumpIf:
		if m.pop() == 0 { break; };
		fallthrough;
	case jump:
		m.pc = next.arg;
	case print:
		fmt.Fprintln(m.out, m.pop());
	case halt:
		goto end;
	default:
		return steps, fmt.Errorf("bad instruction %v at %d", next, m.pc-1);
	};
	goto again;
	end:;
	return steps, nil;
};

func countdown(from int) []instruction {
	return []instruction{
		{push, from}, {dup, 0}, {print, 0},
		{code: push, arg: 1}, {sub, 0},
		{dup, 0}, {jumpIf, 1}, {halt, 0}};
};

func nested(n int) int {
	total := 0;
	outer:;
	for i := 0; i < n; i++ {
		for j := 0; j < n; j++ {
			if i*j > 20 { break outer; };
			if j > i { continue outer; };
			{ k := i ^ j; total += k; };
		};
	};
	return total;
};
