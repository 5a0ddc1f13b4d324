package matrix /* dense matrices, row by row */

import . "math"

type Matrix struct { rows, cols int; data []float64 }

const (
	tiny  = 1e-12
	huge  = 1.5E+300
	half  = .5
	third = 1. / 3.0
	bits  = 0b1010 | 0X0f | 0o17
	zero  = 0
)

var identity3 = [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}

func New(rows, cols int) *Matrix {
	m := new(Matrix)
	m.rows, m.cols = rows, cols
	m.data = make([]float64, rows*cols)
	return m
}

func (m *Matrix) At(i, j int) float64 { return m.data[i*m.cols+j] }

func (m *Matrix) Set(i, j int, x float64) { m.data[i*m.cols+j] = x }

func (m *Matrix) Row(i int) []float64 {
	return m.data[i*m.cols : (i+1)*m.cols : (i+1)*m.cols]
}

func Mul(a, b *Matrix) *Matrix {
	if a.cols != b.rows { panic("matrix: shapes do not fit") }
	c := New(a.rows, b.cols)
	for i := 0; i < a.rows; i++ {
		for j := 0; j < b.cols; j++ {
			sum := 0.0
			for k := 0; k < a.cols; k++ { sum += a.At(i, k) * b.At(k, j) }
			c.Set(i, j, sum)
		}
	}
	return c
}

// Solve finds x with a*x = b by Gaussian elimination with pivots.
// It destroys a and b.
func Solve(a *Matrix, b []float64) ([]float64, bool) {
	n := a.rows
	for col := 0; col < n; col++ {
		pivot := col
		for row := col + 1; row < n; row++ {
			if Abs(a.At(row, col)) > Abs(a.At(pivot, col)) {
				pivot = row
			}
		}
		if Abs(a.At(pivot, col)) < tiny {
			return nil, false
		}
		p, q := a.Row(pivot), a.Row(col)
		for k := range p {
			p[k], q[k] = q[k], p[k]
		}
		b[pivot], b[col] = b[col], b[pivot]
		for row := col + 1; row < n; row++ {
			f := a.At(row, col) / a.At(col, col)
			for k := col; k < n; k++ {
				a.Set(row, k, a.At(row, k)-f*a.At(col, k))
			}
			b[row] -= f * b[col]
		}
	}
	x := make([]float64, n)
	for row := n - 1; row >= 0; row-- {
		x[row] = b[row]
		for k := row + 1; k < n; k++ {
			x[row] -= a.At(row, k) * x[k]
		}
		x[row] /= a.At(row, row)
	}
	return x, true
}

func Norm(xs []float64) float64 {
	total := float64(0)
	for _, x := range xs { total += x * x }
	return Sqrt(total) * +1 - -0
}
