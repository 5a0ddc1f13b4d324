// Every operator, every assignment, and blanks in odd places.
class Operators{
int a=1,b=2,c ,d=- 1;
boolean p=true,q=false;

int arithmetic(){return a+b*c-d/a%b;}
int grouped(){return((a+b)*(c-d))/(a%(b+1));}
int unary(){return - -a+ + +b-~c;}
boolean logic(){return!p&&q||!(p||q)&&p;}
boolean bits(){return p&q|p^q;}
boolean compare(){return a<b==c>d!=a<=b&&c>=d;}
int shifts(){return a<<2>>1>>>3<<b;}
int choose(){return p?a:q?b:c;}
int nested(){return p?q?1:2:q?3:4;}

void assign(){
a=b=c=d;
a+=1;b-=2;c*=3;d/=4;a%=5;
a<<=1;b>>=2;c>>>=3;
a&=15;b|=16;c^=255;
}

void steps(){
a++;++a;b--;--b;
c=a++ + ++b;
d=a-- - --b;
c=a+++b;
d=a---b;
this.a++;
++this.b;
array()[0]++;
}

int[]array(){int[]x=new int[1 0];return x;}

int[][][]cube(){
int[][][]x=new int[2][3][4];
x[0][1][2]=x[1][2][3]+=7;
return x;
}

void casts(){
int i=(int)1.5;
double e=(double)i/2;
short s=(short)(i+1);
byte n=(byte)-1;
char h=(char)(n+'a');
Object o=(java.lang.Object)this;
Operators[]x[]=(Operators[][])o;
float f=(float)(double)(int)s;
String t=(java.lang.String)(java.lang.Object)"text";
int[]z=(int[])array();
Object[]w=(Object[])o;
boolean r=(boolean)!p;
long l=(long)+ 7;
}

boolean is(Object o){
if(o instanceof String)return true;
if(!(o instanceof int[])||o instanceof java.util.List<? >)return false;
return o instanceof Comparable<?> ==true;
}

String numbers(){
return 0+1+2 3+456+0.0+1.25+007+3 . 14+"";
}

void calls(){
arithmetic();this.arithmetic();
new Operators().grouped();
(new Operators()).unary();
("a"+"b").length();
"c".concat("d").concat('e'+"").trim();
java.lang.System.out.println(java.lang.Math.max(1,2));
super.toString();
String k=super.toString()+this.toString()+toString();
}

/**/void/***/empty/* * / */(/*
*/)//
{;;;{}{;}
}//*/

void flow(){
if(p)if(q)a();else b();
if(p){}else if(q);else{}
while(q);
do;while(q);
for(;;)break;
for(a=0,b=1;a<b;a++,b--)continue;
x:y:for(int i=0;;)if(p)break x;else continue y;
return;
}

void a(){}void b(){}
}
