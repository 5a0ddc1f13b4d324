Select Distinct
  b.Title          As title,
  a."Last Name"    As author,
  Count( l.Id)     As loans,
  Max(l.returned)  last_return
From
  Books b
  Inner
  Join Authors a On a.Id = b.Author_Id
  Left	Outer   Join Loans l On l.Book_Id = b.Id
Where
  b.Language In ('de', 'fr', 'pt-BR')
  And b.Pages Between 100 And 999
  And b.Title Not Like 'The %'
  And a.Born Is Not Null
  And Exists (
    Select 1
    From Copies c
    Where c.Book_Id = b.Id And c.State <> 'lost'
  )
Group By
  b.Title,
  a."Last Name"
Having
  Count( l.Id) > 3
Order By
  loans Desc,
  title Asc
Limit 25

Union All

-- books that nobody wanted
Select All
  b.Title, a."Last Name", 1, Today()
From Books As b, Authors As a
Where
  b.Author_Id = a.Id
  And b.Id Not In (Select l.Book_Id From Loans As l)
  Or b.Isbn = '978-3-16-148410-0'

Intersect

Select
  t.Title,
  t.Author,
  Rank() Over (Partition By t.Author Order By t.Year_No Desc) As nth,
  Now()
From (
  Select x.Title, x.Author, x.Year_No
  From "new books" As x
  Order By x.Year_No
  Limit 1000
) As t
Where t.Title = 'Die Räuber' Or (t.Title = 'Faust' And t.Author <> 'Marlowe')